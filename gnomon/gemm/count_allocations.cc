// operator new that counts, for a test program as a whole. A file of its own: where the compiler
// can see into it, it takes the pair of new and free for a mistake.

#include "gnomon/gemm/count_allocations.h"

#include <cstdlib>
#include <new>

namespace {
thread_local long allocations = 0;
}

long AllocationsOfThisThread() { return allocations; }

void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
// std::stable_sort asks for its buffer this way; what it gives back comes to the delete below.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
