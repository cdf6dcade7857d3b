// Asynchronous copies to shared memory: what they bring is there when it has been waited for.
#pragma once
#include "fibers.hpp"

namespace emulation {

// A copy to shared memory that has begun: its bytes land when it is waited for.
struct Copy {
    void *target;
    int bytes, group;
    alignas(16) unsigned char value[16];
};

// The target is poisoned until the copy is waited for.
EMULATION_OWN inline void begin_copy(void *target, const void *source, int bytes, bool valid) {
    Fiber *self = grid.current;
    if ((size_t)target % bytes || (valid && (size_t)source % bytes))
        fail("copy_async: an address is not aligned");
    if (self->copy_count == self->copy_room) {
        self->copy_room = self->copy_room ? 2 * self->copy_room : 16;
        self->copies = (Copy *)realloc(self->copies, self->copy_room * sizeof(Copy));
    }
    Copy &copy = self->copies[self->copy_count++];
    copy.target = target, copy.bytes = bytes, copy.group = self->group;
    if (valid) races::read(source, bytes), memcpy(copy.value, source, bytes);
    else memset(copy.value, 0, bytes);
    memset(target, poison, bytes);
}

EMULATION_OWN inline void finish_copies(int groups_left) {
    Fiber *self = grid.current;
    int kept = 0;
    for (int i = 0; i < self->copy_count; ++i) {
        Copy &copy = self->copies[i];
        if (copy.group < self->group - groups_left) memcpy(copy.target, copy.value, copy.bytes);
        else self->copies[kept++] = copy;
    }
    self->copy_count = kept;
}

}  // namespace emulation
