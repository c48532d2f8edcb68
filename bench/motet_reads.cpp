// SPDX-License-Identifier: MIT
// Random reads by as many fibers as there are reads at a time.
// Run: motet_reads FILE SECONDS [direct]; prints reads/s.
#include <array>
#include <cstdio>
#include <motet/motet.hpp>

#include "random_reads.hpp"

namespace {

struct alignas(bench::page) buffer {
  std::array<std::byte, bench::page> bytes;
};

}  // namespace

int main(int count, char** words) {
  const bench::reads_wanted wanted(count, words);
  motet::run([&] {
    static std::array<buffer, bench::depth> buffers;
    motet::file file{motet::fd(wanted.file)};
    bench::places where(wanted.pages);
    const double begin = bench::now();
    const double end = begin + wanted.seconds * 1e9;
    std::size_t reads = 0;
    motet::group readers;
    for (buffer& own : buffers) {
      readers.spin([&] {
        for (std::size_t mine = 0; mine % 32 != 0 || bench::now() < end; ++mine, ++reads) {
          if (file.read_at(own.bytes, where.next()) != bench::page) {
            bench::fail("a read fell short");
          }
        }
      });
    }
    readers.await_all();
    std::printf("%.0f\n", static_cast<double>(reads) * 1e9 / (bench::now() - begin));
  });
}
