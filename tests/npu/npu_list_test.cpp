// Lists of emitted trees (wsp_list.h): what they hold, that new elements are T(), and that what an
// element holds is given back once, when it is dropped.

#include "src/npu/tree/include/wsp_list.h"

#include "test.h"

#include <memory>

using wsp::List;

// The sum of 1 * items[0] + 2 * items[1] + ...
static size_t sum_of(const List<size_t> &list) {
    size_t sum = 0, i = 1;
    for (size_t item : list) {
        sum += i++ * item;
    }
    return sum;
}

TEST(list__grows_and_keeps_its_elements) {
    List<size_t> list;
    assert_true(list.empty() && list.begin() == list.end());
    for (size_t i = 0; i < 1000; i++) {
        list.push_back(i * i);
        assert_true(list.size() == i + 1 && list.back() == i * i && list.front() == 0);
    }
    for (size_t i = 0; i < 1000; i++) {
        assert_true(list[i] == i * i && list.data()[i] == i * i);
    }
    list.push_back(list[999]);  // an element of its own
    assert_true(list[1000] == 999 * 999);
}

TEST(list__new_elements_are_zero_in_old_room_and_in_new) {
    List<size_t> list = {1, 2, 3, 4, 5};
    list.resize(2);
    list.resize(4);  // in the room that there was
    assert_true(sum_of(list) == 1 * 1 + 2 * 2 && list.size() == 4);
    list.clear();
    list.resize(100);
    assert_true(sum_of(list) == 0 && list.size() == 100);
    list.assign(3, 7);
    list.pop_back();
    assert_true(++list.emplace_back() == 1);
    assert_true(sum_of(list) == 7 + 2 * 7 + 3 * 1);
    list.assign(4, list[2]);  // an element of its own
    assert_true(sum_of(list) == 1 + 2 + 3 + 4);
}

TEST(list__copies_are_apart) {
    List<size_t> list = {1, 2, 3}, copy = list, part(list.data() + 1, list.data() + 3);
    copy[0] = 9;
    copy.append({4, 5});
    assert_true(sum_of(list) == 1 + 4 + 9 && list.size() == 3);
    assert_true(sum_of(copy) == 9 + 4 + 9 + 16 + 25 && copy.size() == 5);
    assert_true(sum_of(part) == 2 + 6);
    list = copy;
    list = List<size_t>(2, 8);
    assert_true(sum_of(list) == 8 + 16 && copy.size() == 5);
    List<size_t> moved = static_cast<List<size_t> &&>(copy);
    assert_true(moved.size() == 5 && copy.empty());
}

TEST(list__what_elements_hold_is_given_back_when_they_are_dropped) {
    auto held = std::make_shared<int>(1);
    {
        List<std::shared_ptr<int>> list;
        for (int i = 0; i < 10; i++) {
            list.push_back(held);
            assert_true(held.use_count() == 2 + i);
        }
        list.pop_back();
        assert_true(held.use_count() == 10);
        list.resize(3);
        assert_true(held.use_count() == 4);
        list.assign(2, held);
        assert_true(held.use_count() == 3);
        list.clear();
        assert_true(held.use_count() == 1);
        list.push_back(held);
    }
    assert_true(held.use_count() == 1);
    List<std::unique_ptr<int>> owners;  // elements that cannot be copied
    for (int i = 0; i < 20; i++) {
        owners.push_back(std::make_unique<int>(i));
    }
    for (size_t i = 0; i < 20; i++) {
        assert_true(*owners[i] == static_cast<int>(i));
    }
}
