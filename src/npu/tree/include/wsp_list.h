// A list of elements, one after another in memory, that grows at its end: the part of std::vector that
// this runtime needs. A tree has some forty lists of different types, and a compiler instantiates the
// functions of each. With this list a whole tree compiles about a second faster, in 5 s.
//
// Elements are default-constructed and assigned: a list of `room` elements has them all, and gives
// the first size(). Growing moves them. Indices are not checked.

#ifndef WSP_LIST_H
#define WSP_LIST_H

#include <stddef.h>

#include <initializer_list>
#include <type_traits>
#include <utility>

namespace wsp {

template <typename T> class List {
  public:
    List() = default;
    explicit List(size_t count) {
        resize(count);
    }
    List(size_t count, const T &value) {
        assign(count, value);
    }
    List(const T *first, const T *last) {
        assign(first, last);
    }
    List(const List &other) {
        assign(other.begin(), other.end());
    }
    List(List &&other) noexcept {
        swap(other);
    }
    List(std::initializer_list<T> items) {
        append(items);
    }
    List &operator=(List other) noexcept {
        swap(other);
        return *this;
    }
    ~List() {
        delete[] items_;
    }

    size_t size() const {
        return size_;
    }
    bool empty() const {
        return size_ == 0;
    }
    T *data() {
        return items_;
    }
    const T *data() const {
        return items_;
    }
    T *begin() {
        return items_;
    }
    const T *begin() const {
        return items_;
    }
    T *end() {
        return items_ + size_;
    }
    const T *end() const {
        return items_ + size_;
    }
    T &operator[](size_t i) {
        return items_[i];
    }
    const T &operator[](size_t i) const {
        return items_[i];
    }
    T &front() {
        return items_[0];
    }
    T &back() {
        return items_[size_ - 1];
    }
    const T &back() const {
        return items_[size_ - 1];
    }

    void push_back(T item) {
        reserve(size_ + 1);
        items_[size_++] = std::move(item);
    }
    T &emplace_back() {
        push_back(T());
        return back();
    }
    void append(const T *first, const T *last) {  // of another list
        for (; first < last; first++) {
            push_back(*first);
        }
    }
    void append(std::initializer_list<T> items) {
        append(items.begin(), items.end());
    }
    void pop_back() {
        resize(size_ - 1);
    }
    void clear() {
        resize(0);
    }

    // Makes room for `count` elements, or for twice as many as there was room for.
    void reserve(size_t count) {
        if (count <= room_) {
            return;
        }
        room_ = count > 2 * room_ ? count : 2 * room_;
        T *items = new T[room_]();
        for (size_t i = 0; i < size_; i++) {
            items[i] = std::move(items_[i]);
        }
        delete[] items_;
        items_ = items;
    }

    // New elements are T(). Dropped elements release their memory.
    void resize(size_t count) {
        if (count > room_) {
            reserve(count);  // new elements there are T()
        } else if (count > size_) {
            refresh(size_, count);
        } else if (!std::is_trivially_destructible<T>::value) {
            refresh(count, size_);
        }
        size_ = count;
    }

    void assign(size_t count, const T &value) {
        T copy = value;  // it may be an element
        resize(count);
        for (size_t i = 0; i < count; i++) {
            items_[i] = copy;
        }
    }
    void assign(const T *first, const T *last) {  // of another list
        resize(static_cast<size_t>(last - first));
        for (size_t i = 0; i < size_; i++) {
            items_[i] = first[i];
        }
    }

  private:
    void refresh(size_t from, size_t to) {
        for (; from < to; from++) {
            items_[from] = T();
        }
    }
    void swap(List &other) {
        std::swap(items_, other.items_);
        std::swap(size_, other.size_);
        std::swap(room_, other.room_);
    }

    T *items_ = nullptr;
    size_t size_ = 0, room_ = 0;
};

}  // namespace wsp

#endif
