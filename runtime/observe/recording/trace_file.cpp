// SPDX-License-Identifier: MIT
// See observe/recording/trace_file.hpp. All of a ring has its place on the disk before a thread
// writes to it: otherwise a full disk would end the process by SIGBUS.
// Source: mmap(2), posix_fallocate(3), flock(2).
#include "observe/recording/trace_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <motet/base/errors.hpp>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "base/sigpipe.hpp"
#include "base/system_calls.hpp"
#include "observe/recording/mapped_file.hpp"
#include "platform/ticks.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

/// Of threads that have ended: so many rings are not used again.
constexpr std::size_t retired_rings = 8;
constexpr std::size_t texts_at = sizeof(trace::head);
constexpr std::size_t rings_at = texts_at + trace::texts_size;

constexpr std::size_t ring_size(std::size_t records) noexcept {
  return sizeof(trace::ring_head) + records * sizeof(trace::record);
}

class descriptor {
 public:
  explicit descriptor(int fd) noexcept : fd_(fd) {}
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;
  descriptor(descriptor&& other) noexcept : fd_(other.release()) {}
  ~descriptor() {
    if (fd_ >= 0) sys::close(fd_);
  }

  int get() const noexcept { return fd_; }
  int release() noexcept { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

[[noreturn]] void refuse(int error, const std::string& path, const char* call) {
  const bool recorded = error == EWOULDBLOCK;
  throw std::system_error(
      error, std::system_category(),
      "the trace " + path + ": " + (recorded ? "another process records to it" : call));
}

descriptor open_file(const std::string& path) {
  descriptor file(sys::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600));
  if (file.get() < 0) refuse(errno, path, "open");
  return file;
}

descriptor open_and_lock(const std::string& path) {
  descriptor file = open_file(path);
  if (sys::flock(file.get(), LOCK_EX | LOCK_NB) != 0) refuse(errno, path, "flock");
  return file;
}

bool is_same_file(int fd, int other) noexcept {
  struct stat first{};
  struct stat second{};
  return ::fstat(fd, &first) == 0 && ::fstat(other, &second) == 0 &&
         first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

/// Returns: whether the file is a trace; false for an empty file.
/// Throws: std::invalid_argument if it is another kind of file.
bool is_trace(const descriptor& file, const std::string& path) {
  std::array<char, 8> sign{};
  const ssize_t length = sys::pread(file.get(), sign.data(), sign.size(), 0);
  if (length < 0) refuse(errno, path, "read");
  if (length > 0 && sign != trace::magic)
    throw std::invalid_argument(path + " exists, and is not a trace");
  return length > 0;
}

/// Opens a file that is empty, or a trace, which is lost then. No other process records to it.
descriptor open_trace(const std::string& path) {
  descriptor file = open_and_lock(path);
  is_trace(file, path);
  if (::ftruncate(file.get(), 0) != 0) refuse(errno, path, "ftruncate");
  return file;
}

/// The same, but an existing trace is kept under another name, because its process may have
/// crashed.
descriptor open_new_trace(const std::string& path) {
  {
    const descriptor file = open_and_lock(path);
    if (is_trace(file, path) && ::rename(path.c_str(), (path + ".before").c_str()) != 0)
      refuse(errno, path, "rename");
  }
  return open_trace(path);
}

void write_at(int fd, const void* data, std::size_t size, std::size_t offset) {
  const auto* bytes = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t bytes_written = sys::pwrite(fd, bytes, size, static_cast<off_t>(offset));
    if (bytes_written < 0 && errno == EINTR) continue;
    if (bytes_written < 0) throw_errno(errno, "pwrite");
    bytes += bytes_written;
    size -= static_cast<std::size_t>(bytes_written);
    offset += static_cast<std::size_t>(bytes_written);
  }
}

/// A record, and a ring's head, in a file that nobody maps.
using plain_record = std::array<std::uint64_t, 2>;

/// Copies a ring that its thread goes on to write to.
void save_ring(const trace::ring_head& ring, std::size_t records, int fd, std::size_t offset) {
  constexpr std::size_t at_once = 4096;
  const auto* source = reinterpret_cast<const trace::record*>(&ring + 1);
  const std::uint64_t end = ring.record_count.load(std::memory_order_acquire);
  const std::size_t count = std::min<std::uint64_t>(end, records);
  std::vector<plain_record> part;
  for (std::size_t first = 0; first < count; first += part.size()) {
    part.resize(std::min(at_once, count - first));
    for (std::size_t i = 0; i < part.size(); ++i) {
      const trace::record& record = source[first + i];
      part[i] = {record.first.load(std::memory_order_relaxed),
                 record.second.load(std::memory_order_relaxed)};
    }
    write_at(fd, part.data(), part.size() * sizeof part[0],
             offset + sizeof(trace::ring_head) + first * sizeof part[0]);
  }
  std::atomic_thread_fence(std::memory_order_acquire);
  const std::uint64_t start = ring.record_count.load(std::memory_order_relaxed);
  const std::uint64_t whole = start + 1 > records ? start + 1 - records : 0;
  const std::array<std::uint64_t, 4> head = {
      end, std::min(end, std::max(whole, ring.first_whole.load(std::memory_order_relaxed))),
      ring.thread.load(std::memory_order_relaxed), ring.fibers.load(std::memory_order_relaxed)};
  write_at(fd, head.data(), sizeof head, offset);
}

struct instant {
  std::uint64_t ticks = 0;
  std::chrono::nanoseconds time{};  // of the clock of the day
};

/// Both readings are of one instant: if the thread has lost its processor between them, or the file
/// system has taken its time, the rate of the counter would be wrong by a percent.
instant present() noexcept {
  constexpr std::uint64_t a_moment = 10'000;
  instant reading;
  for (int tries = 0; tries < 3; ++tries) {
    reading.ticks = ticks();
    reading.time = std::chrono::system_clock::now().time_since_epoch();
    if (ticks() - reading.ticks < a_moment) break;
  }
  return reading;
}

}  // namespace

trace_file& trace_file::begin(const std::string& path, std::size_t records) {
  auto* file = new trace_file(path, records);
  current_ = file;
  return *file;
}

trace_file::trace_file(const std::string& path, std::size_t records)
    : path_(path), records_(records) {
  descriptor file = open_new_trace(path);
  head_ = static_cast<trace::head*>(map_of_file(file.get(), 0, rings_at));
  head_->process = static_cast<std::uint64_t>(::getpid());
  const instant beginning = present();
  began_ticks_ = beginning.ticks;
  head_->began_at = static_cast<std::uint64_t>(beginning.time.count());
  head_->began_ticks = began_ticks_;
  head_->ticks_in_second = ticks_in(std::chrono::seconds(1));
  head_->records = records;
  head_->texts_at = texts_at;
  head_->texts_size = trace::texts_size;
  head_->rings_at = rings_at;
  head_->ring_size = ring_size(records);
  texts_.begin(*head_);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  head_->sign = trace::magic;  // marks the file as a trace
  fd_ = file.release();
}

/// The lock on the file, which the parent holds, is not given up by that.
void trace_file::abandon() noexcept {
  trace_file* parents = current_.exchange(nullptr);
  if (parents == nullptr) return;
  sys::close(parents->fd_);
  parents->previous_ = of_the_parent_;
  of_the_parent_ = parents;
}

trace::ring_head& trace_file::add_ring() {
  rings_.reserve(rings_.size() + 1);
  given_back_.reserve(rings_.size() + 1);
  const std::size_t size = ring_size(records_);
  void* mapping = map_of_file(fd_, rings_at + rings_.size() * size, size);
  rings_.push_back(static_cast<trace::ring_head*>(mapping));
  return *rings_.back();
}

trace::ring_head& trace_file::take_ring() {
  const std::lock_guard guard(lock_);
  trace::ring_head* free_ring = nullptr;
  if (given_back_.size() > retired_rings) {
    free_ring = given_back_.front();
    given_back_.erase(given_back_.begin());
  } else {
    free_ring = &add_ring();
  }
  free_ring->record_count = 0;
  free_ring->first_whole = 0;
  free_ring->thread = static_cast<std::uint64_t>(::gettid());
  head_->rings_used = rings_.size();
  return *free_ring;
}

void trace_file::give_back(trace::ring_head& ring) noexcept {
  const std::lock_guard guard(lock_);
  given_back_.push_back(&ring);
  measure_ticks();
}

/// The longer the time, the better.
void trace_file::measure_ticks() noexcept {
  const instant end = present();
  const auto elapsed = static_cast<double>(end.time.count()) - static_cast<double>(head_->began_at);
  if (elapsed < 1e8) return;  // or the clock of the day has been set
  const auto elapsed_ticks = static_cast<double>(end.ticks - began_ticks_);
  const auto rate = static_cast<std::uint64_t>(elapsed_ticks / elapsed * 1e9);
  const std::uint64_t old_rate = head_->ticks_in_second;
  if (rate > old_rate - old_rate / 50 && rate < old_rate + old_rate / 50)
    head_->ticks_in_second = rate;
}

void trace_file::save(const std::string& path) {
  if (is_same_file(open_file(path).get(), fd_)) {
    throw std::invalid_argument("save_trace(): this process records to " + path);
  }
  const held_signal<SIGXFSZ> too_large;
  const descriptor file = open_trace(path);
  const std::lock_guard guard(lock_);
  measure_ticks();
  const std::size_t rings = rings_.size();
  for (std::size_t i = 0; i < rings; ++i)
    save_ring(*rings_[i], records_, file.get(), rings_at + i * ring_size(records_));
  if (::ftruncate(file.get(), static_cast<off_t>(rings_at + rings * ring_size(records_))) != 0)
    throw_errno(errno, "ftruncate");
  const std::uint64_t texts = head_->texts_used.load(std::memory_order_acquire);
  write_at(file.get(), reinterpret_cast<const char*>(head_) + texts_at, texts, texts_at);
  write_head(file.get(), texts, rings);
}

/// Other threads go on to change the original.
void trace_file::write_head(int fd, std::uint64_t texts, std::size_t rings) const {
  trace::head copy{};
  copy.sign = head_->sign;
  copy.process = head_->process;
  copy.began_at = head_->began_at;
  copy.began_ticks = began_ticks_;
  copy.ticks_in_second = head_->ticks_in_second.load();
  copy.records = records_;
  copy.texts_at = texts_at;
  copy.texts_size = trace::texts_size;
  copy.rings_at = rings_at;
  copy.ring_size = ring_size(records_);
  copy.texts_used = texts;
  copy.rings_used = rings;
  write_at(fd, &copy, sizeof copy, 0);
}

}}}  // namespace motet::MOTET_ABI::detail
