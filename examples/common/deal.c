#include "deal.h"

void deal_add(double *heap, uint32_t count, double cost) {
    double value = heap[0] + cost;
    uint32_t at = 0;
    for (uint32_t child = 1; child < count; child = at * 2 + 1) {
        child += child + 1 < count && heap[child + 1] < heap[child];
        if (heap[child] >= value) {
            break;
        }
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = value;
}
