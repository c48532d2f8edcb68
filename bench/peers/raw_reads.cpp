// SPDX-License-Identifier: MIT
// The bare limit of random reads: a ring with so many reads in it all the time, each of which is
// begun again, elsewhere, when it is over. Run: raw_reads FILE SECONDS [direct]; prints reads/s.
#include <liburing.h>

#include <array>
#include <cstdio>

#include "../random_reads.hpp"

namespace {

struct alignas(bench::page) buffer {
  std::array<std::byte, bench::page> bytes;
};

int open_ring(io_uring& ring) {
  io_uring_params params{};
  params.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
  return io_uring_queue_init_params(bench::depth, &ring, &params);
}

}  // namespace

int main(int count, char** words) {
  const bench::reads_wanted wanted(count, words);
  io_uring ring{};
  if (open_ring(ring) < 0) bench::fail("io_uring_queue_init_params");
  io_uring_register_ring_fd(&ring);
  static std::array<buffer, bench::depth> buffers;
  bench::places where(wanted.pages);
  const auto begin_read = [&](std::uint64_t slot) {
    io_uring_sqe* entry = io_uring_get_sqe(&ring);
    io_uring_prep_read(entry, wanted.file, buffers[slot].bytes.data(), bench::page,
                       static_cast<std::uint64_t>(where.next()));
    entry->user_data = slot;
  };
  for (std::uint64_t slot = 0; slot < bench::depth; ++slot) begin_read(slot);
  const double begin = bench::now();
  const double end = begin + wanted.seconds * 1e9;
  std::size_t reads = 0;
  while (bench::now() < end) {
    if (io_uring_submit_and_wait(&ring, 1) < 0) bench::fail("io_uring_submit_and_wait");
    unsigned head = 0;
    unsigned done = 0;
    io_uring_cqe* result = nullptr;
    io_uring_for_each_cqe(&ring, head, result) {
      if (result->res != static_cast<int>(bench::page)) bench::fail("a read fell short");
      begin_read(result->user_data);
      ++done;
    }
    io_uring_cq_advance(&ring, done);
    reads += done;
  }
  std::printf("%.0f\n", static_cast<double>(reads) * 1e9 / (bench::now() - begin));
}
