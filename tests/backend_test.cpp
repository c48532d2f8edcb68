// SPDX-License-Identifier: MIT
// The seam: whatever a backend is built on, the same operations have the same outcomes, and each
// comes back exactly once.
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <memory>
#include <motet/backend.hpp>
#include <string>
#include <thread>
#include <vector>

#include "backends.hpp"
#include "catch.hpp"
#include "heart/file_call.hpp"
#include "sockets.hpp"
#include "support.hpp"
#include "words/remote_closings.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::make_pipe;
using testing::make_socket_pair;
using time_point = backend::time_point;

namespace {

/// One operation, and how often it has come back.
struct trial {
  trial() { op.owner = this; }
  trial(verb kind, int fd, void* buffer = nullptr, std::size_t size = 0, int flags = 0) : trial() {
    op.kind = kind;
    op.fd = fd;
    op.buffer = buffer;
    op.length = static_cast<std::uint32_t>(size);
    op.flags = flags;
  }
  trial(const trial&) = delete;
  trial& operator=(const trial&) = delete;

  operation op;
  int ends = 0;
};

std::uint64_t new_stream() {
  static std::atomic<std::uint64_t> last{1'000'000};  // not a number that a tcp_stream has
  return ++last;
}

/// A backend and its wake descriptor. Operations still in flight at its end are the test's fault.
class machine {
 public:
  explicit machine(const backend_options& sizes = {})
      : wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    const char* wanted = std::getenv("MOTET_BACKEND");
    kernel_ = detail::make_backend(wanted == nullptr ? "" : wanted, sizes);
    kernel_->listen(wake_.get());
  }

  backend& kernel() { return *kernel_; }

  void submit(trial& each) {
    if (kernel_->submit(each.op)) ++each.ends;
  }
  void poll(time_point deadline) {
    completions done;
    kernel_->poll(deadline, done);
    while (operation* op = done.pop()) ++static_cast<trial*>(op->owner)->ends;
  }
  /// Looks a few times without waiting: what comes back wrongly would come now.
  void look() {
    for (int i = 0; i < 4; ++i) poll(time_point::min());
  }
  void wait_for(const trial& each) {
    while (each.ends == 0) poll(time_point::max());
  }
  /// Returns: the result of an operation that came back once.
  std::int32_t result_of(trial& each) {
    wait_for(each);
    look();
    REQUIRE(each.ends == 1);
    return each.op.result;
  }
  std::int32_t perform(trial& each) {
    submit(each);
    return result_of(each);
  }
  std::int32_t cancel(trial& each) {
    kernel_->cancel(each.op);
    return result_of(each);
  }
  void wake() const {
    const std::uint64_t one = 1;
    REQUIRE(::write(wake_.get(), &one, sizeof one) == sizeof one);
  }

 private:
  fd wake_;
  std::unique_ptr<backend> kernel_;
};

/// `first` reads what `second` writes.
struct connected {
  connected(const char* name, bool is_socket, int with_mode)
      : kind(name), socket(is_socket), mode(with_mode), ends(make()) {}

  testing::descriptor_pair make() const {
    return socket ? make_socket_pair(mode) : make_pipe(mode);
  }

  const char* kind;
  bool socket;
  int mode;
  testing::descriptor_pair ends;
};

std::deque<connected> all_kinds() {
  std::deque<connected> kinds;
  kinds.emplace_back("a blocking pipe", false, 0);
  kinds.emplace_back("a non-blocking pipe", false, O_NONBLOCK);
  kinds.emplace_back("a blocking socket", true, 0);
  kinds.emplace_back("a non-blocking socket", true, SOCK_NONBLOCK);
  return kinds;
}

std::vector<verb> reading_verbs(bool socket) {
  std::vector<verb> verbs{verb::read, verb::readv};
  if (socket) verbs.push_back(verb::recv);
  return verbs;
}

std::vector<verb> writing_verbs(bool socket) {
  std::vector<verb> verbs{verb::write, verb::writev};
  if (socket) verbs.push_back(verb::send);
  return verbs;
}

/// A buffer that can be moved either way, by a plain verb or by a vectored one in two halves.
struct block {
  explicit block(std::size_t size, char fill = '.') : bytes(size, fill) {
    halves[0] = {bytes.data(), size / 2};
    halves[1] = {bytes.data() + size / 2, size - size / 2};
  }
  void describe(trial& each, verb kind, int fd) {
    const bool vectored = kind == verb::readv || kind == verb::writev;
    each.op.kind = kind;
    each.op.fd = fd;
    each.op.flags = kind == verb::send ? MSG_NOSIGNAL : 0;
    if (vectored) {
      each.op.vectors = halves.data();
      each.op.length = 2;
    } else {
      each.op.buffer = bytes.data();
      each.op.length = static_cast<std::uint32_t>(bytes.size());
    }
  }
  std::string bytes;
  std::array<iovec, 2> halves;
};

void put(int fd, std::string_view text) {
  REQUIRE(::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
}

void describe_connect(trial& each, int fd, const sockaddr_in& address) {
  each.op.kind = verb::connect;
  each.op.fd = fd;
  each.op.address = const_cast<sockaddr*>(reinterpret_cast<const sockaddr*>(&address));
  each.op.length = sizeof address;
}

/// A listener whose queue is full: another connection to it stays under way.
/// A connection that is made is in the listener's queue only once its last acknowledgement is
/// there, which may be after the connecting end knows of it.
struct full_listener {
  full_listener() {
    pollfd queue{listener.get(), POLLIN, 0};
    REQUIRE(::poll(&queue, 1, 10'000) == 1);
  }
  fd listener = testing::make_listener(0, 0);
  fd taken = testing::connect_to(testing::port_of(listener.get()));
  sockaddr_in address = testing::loopback_address(testing::port_of(listener.get()));
};

std::atomic<int> signals_seen{0};

/// Counts a signal for as long as it lives; system calls are not restarted.
class counted_signal {
 public:
  explicit counted_signal(int number) : number_(number) {
    signals_seen = 0;
    struct sigaction counting{};
    counting.sa_handler = [](int) { ++signals_seen; };
    ::sigaction(number, &counting, &before_);
  }
  counted_signal(const counted_signal&) = delete;
  counted_signal& operator=(const counted_signal&) = delete;
  ~counted_signal() { ::sigaction(number_, &before_, nullptr); }

 private:
  int number_;
  struct sigaction before_{};
};

bool is_pending(int signal) {
  sigset_t pending;
  ::sigpending(&pending);
  return ::sigismember(&pending, signal) == 1;
}

}  // namespace

TEST_CASE("a read ends once with what is there, and waits if nothing is", "[backend]") {
  machine m;
  for (connected& each : all_kinds()) {
    const int mode = ::fcntl(each.ends.first(), F_GETFL);
    for (const verb kind : reading_verbs(each.socket)) {
      INFO(each.kind << ", verb " << static_cast<int>(kind));
      block ready(8);
      trial at_once;
      ready.describe(at_once, kind, each.ends.first());
      put(each.ends.second(), "abc");
      CHECK(m.perform(at_once) == 3);
      CHECK(ready.bytes == "abc.....");

      block later(8);
      trial waiting;
      later.describe(waiting, kind, each.ends.first());
      m.submit(waiting);
      m.look();
      CHECK(waiting.ends == 0);
      put(each.ends.second(), "defgh");
      CHECK(m.result_of(waiting) == 5);
      CHECK(later.bytes == "defgh...");
    }
    CHECK(::fcntl(each.ends.first(), F_GETFL) == mode);
  }
}

TEST_CASE("a write ends once, and waits if there is no room", "[backend]") {
  machine m;
  for (connected& each : all_kinds()) {
    const int mode = ::fcntl(each.ends.second(), F_GETFL);
    for (const verb kind : writing_verbs(each.socket)) {
      INFO(each.kind << ", verb " << static_cast<int>(kind));
      block text(6, 'x');
      trial at_once;
      text.describe(at_once, kind, each.ends.second());
      CHECK(m.perform(at_once) == 6);
      CHECK(testing::take_all(each.ends.first()) == "xxxxxx");

      testing::fill(each.ends.second());
      trial waiting;
      text.describe(waiting, kind, each.ends.second());
      m.submit(waiting);
      m.look();
      CHECK(waiting.ends == 0);
      // A kernel may write as soon as there is room: then the text is taken with what filled it.
      std::string taken = testing::take_all(each.ends.first());
      CHECK(m.result_of(waiting) == 6);
      taken += testing::take_all(each.ends.first());
      CHECK(taken.substr(taken.size() - 6) == "xxxxxx");
      CHECK(std::count(taken.begin(), taken.end(), 'x') == 6);
    }
    CHECK(::fcntl(each.ends.second(), F_GETFL) == mode);
  }
}

TEST_CASE("a write of more than there is room for writes a part and says how much", "[backend]") {
  machine m;
  for (connected& each : all_kinds()) {
    for (const verb kind : writing_verbs(each.socket)) {
      INFO(each.kind << ", verb " << static_cast<int>(kind));
      block large(std::size_t{8} << 20, 'x');
      trial part;
      large.describe(part, kind, each.ends.second());
      const std::int32_t written = m.perform(part);
      CHECK(written > 0);
      CHECK(written < 8 << 20);
      CHECK(testing::take_all(each.ends.first()).size() == static_cast<std::size_t>(written));
    }
  }
}

TEST_CASE("a read at the end of the stream gives nothing, before and while it waits", "[backend]") {
  machine m;
  for (const bool waits : {false, true}) {
    for (connected& each : all_kinds()) {
      for (const verb kind : reading_verbs(each.socket)) {
        INFO(each.kind << ", verb " << static_cast<int>(kind) << ", waits: " << waits);
        auto ends = each.make();
        block into(8);
        trial last;
        into.describe(last, kind, ends.first());
        if (waits) {
          m.submit(last);
          m.look();
          CHECK(last.ends == 0);
        }
        ends.close_second();
        if (!waits) m.submit(last);
        CHECK(m.result_of(last) == 0);
      }
    }
  }
}

TEST_CASE("bytes sent before the end of the stream are read before it", "[backend]") {
  machine m;
  for (connected& each : all_kinds()) {
    INFO(each.kind);
    put(each.ends.second(), "last words");
    each.ends.close_second();
    block into(64);
    trial first;
    into.describe(first, verb::read, each.ends.first());
    CHECK(m.perform(first) == 10);
    trial second;
    into.describe(second, verb::read, each.ends.first());
    CHECK(m.perform(second) == 0);
  }
}

TEST_CASE("every verb on a closed descriptor is a bad descriptor", "[backend]") {
  machine m;
  int closed = -1;
  {
    const auto gone = make_socket_pair();
    closed = gone.first();
  }
  std::byte buffer[8];
  iovec vectors{buffer, sizeof buffer};
  const sockaddr_in nowhere = testing::loopback_address(1);
  for (int kind = 0; kind <= static_cast<int>(verb::wait_fd); ++kind) {
    INFO("verb " << kind);
    trial refused(static_cast<verb>(kind), closed, buffer, sizeof buffer);
    if (refused.op.kind == verb::readv || refused.op.kind == verb::writev) {
      refused.op.vectors = &vectors;
      refused.op.length = 1;
    }
    if (refused.op.kind == verb::accept) refused.op.address = nullptr;
    if (refused.op.kind == verb::connect) describe_connect(refused, closed, nowhere);
    if (refused.op.kind == verb::wait_fd) refused.op.flags = POLLIN;
    CHECK(m.perform(refused) == -EBADF);
  }
}

TEST_CASE("an operation sees the descriptor that has the number now", "[backend]") {
  machine m;
  std::byte buffer[8];
  int number = -1;
  for (int round = 0; round < 100; ++round) {
    auto ends = make_pipe();
    if (round > 0) REQUIRE(ends.first() == number);
    number = ends.first();
    trial read(verb::read, ends.first(), buffer, sizeof buffer);
    m.submit(read);
    m.look();
    REQUIRE(read.ends == 0);
    put(ends.second(), "x");
    REQUIRE(m.result_of(read) == 1);
  }
}

TEST_CASE("a duplicate of a closed descriptor does not disturb its number's next owner",
          "[backend]") {
  machine m;
  std::byte buffer[8];
  auto old = make_pipe();
  const fd duplicate(::dup(old.first()));
  trial before(verb::read, old.first(), buffer, sizeof buffer);
  m.submit(before);
  m.look();
  put(old.second(), "x");
  REQUIRE(m.result_of(before) == 1);
  const int number = old.first();
  old.close_first();

  auto fresh = make_pipe();
  REQUIRE(fresh.first() == number);
  trial after(verb::read, fresh.first(), buffer, sizeof buffer);
  m.submit(after);
  put(old.second(), "for the duplicate");
  m.look();
  CHECK(after.ends == 0);
  put(fresh.second(), "y");
  CHECK(m.result_of(after) == 1);
  CHECK(buffer[0] == std::byte{'y'});
}

TEST_CASE("MSG_DONTWAIT answers instead of waiting", "[backend]") {
  machine m;
  for (const int mode : {0, static_cast<int>(SOCK_NONBLOCK)}) {
    auto ends = make_socket_pair(mode);
    char byte = 'x';
    trial empty(verb::recv, ends.first(), &byte, 1, MSG_DONTWAIT);
    CHECK(m.perform(empty) == -EAGAIN);
    testing::fill(ends.second());
    trial full(verb::send, ends.second(), &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    CHECK(m.perform(full) == -EAGAIN);
    trial some(verb::recv, ends.first(), &byte, 1, MSG_DONTWAIT);
    CHECK(m.perform(some) == 1);
  }
}

TEST_CASE("MSG_PEEK leaves the bytes where they are", "[backend]") {
  machine m;
  auto ends = make_socket_pair();
  char byte = '.';
  trial peek(verb::recv, ends.first(), &byte, 1, MSG_PEEK);
  m.submit(peek);
  m.look();
  put(ends.second(), "xy");
  CHECK(m.result_of(peek) == 1);
  CHECK(byte == 'x');
  CHECK(testing::take_all(ends.first()) == "xy");
}

TEST_CASE("two readers of one descriptor get one byte each", "[backend]") {
  machine m;
  for (connected& each : all_kinds()) {
    INFO(each.kind);
    char bytes[2] = {'.', '.'};
    trial first(verb::read, each.ends.first(), &bytes[0], 1);
    trial second(verb::read, each.ends.first(), &bytes[1], 1);
    m.submit(first);
    m.submit(second);
    m.look();
    CHECK(first.ends + second.ends == 0);
    put(each.ends.second(), "ab");
    CHECK(m.result_of(first) == 1);
    CHECK(m.result_of(second) == 1);
    CHECK(bytes[0] + bytes[1] == 'a' + 'b');
  }
}

TEST_CASE("a reader and a writer of one socket do not end each other", "[backend]") {
  machine m;
  auto ends = make_socket_pair();
  testing::fill(ends.first());
  char in = '.';
  char out = 'o';
  trial read(verb::read, ends.first(), &in, 1);
  trial write(verb::write, ends.first(), &out, 1);
  m.submit(read);
  m.submit(write);
  put(ends.second(), "i");
  CHECK(m.result_of(read) == 1);
  CHECK(write.ends == 0);
  testing::take_all(ends.second());
  CHECK(m.result_of(write) == 1);
  CHECK(read.ends == 1);
}

TEST_CASE("a regular file is read and written at its current position", "[backend]") {
  machine m;
  std::string name = std::filesystem::temp_directory_path() / "motet-backend-XXXXXX";
  const fd file(::mkostemp(name.data(), O_CLOEXEC));
  REQUIRE(file);
  ::unlink(name.c_str());
  std::string text = "hello, file";
  const auto perform = [&m](trial& each) {
    const std::int32_t result = m.perform(each);
    return result == operation::would_block_thread ? detail::call_and_block(each.op) : result;
  };
  trial first(verb::write, file.get(), text.data(), 5);
  CHECK(perform(first) == 5);
  trial rest(verb::write, file.get(), text.data() + 5, 6);
  CHECK(perform(rest) == 6);
  REQUIRE(::lseek(file.get(), 0, SEEK_SET) == 0);
  block into(64);
  trial read;
  into.describe(read, verb::readv, file.get());
  CHECK(perform(read) == 11);
  CHECK(into.bytes.substr(0, 11) == text);
  trial end(verb::read, file.get(), into.bytes.data(), 1);
  CHECK(perform(end) == 0);
}

TEST_CASE("an accept takes who waits, and waits for who comes", "[backend]") {
  machine m;
  for (const int mode : {0, static_cast<int>(SOCK_NONBLOCK)}) {
    INFO("listener's mode " << mode);
    const fd listener = testing::make_listener(mode);
    const std::uint16_t port = testing::port_of(listener.get());
    const int flags = ::fcntl(listener.get(), F_GETFL);

    const fd early = testing::connect_to(port);
    sockaddr_in peer{};
    socklen_t size = sizeof peer;
    trial at_once(verb::accept, listener.get(), &peer, 0, SOCK_CLOEXEC);
    at_once.op.address_length = &size;
    const fd first(m.perform(at_once));
    REQUIRE(first);
    CHECK(size == sizeof peer);
    CHECK(ntohs(peer.sin_port) == testing::port_of(early.get()));
    CHECK((::fcntl(first.get(), F_GETFD) & FD_CLOEXEC) != 0);
    CHECK((::fcntl(first.get(), F_GETFL) & O_NONBLOCK) == 0);

    trial waiting(verb::accept, listener.get(), nullptr, 0, SOCK_CLOEXEC | SOCK_NONBLOCK);
    waiting.op.nonblocking = mode != 0;
    m.submit(waiting);
    m.look();
    CHECK(waiting.ends == 0);
    const fd late = testing::connect_to(port);
    const fd second(m.result_of(waiting));
    REQUIRE(second);
    CHECK((::fcntl(second.get(), F_GETFL) & O_NONBLOCK) != 0);
    CHECK(::fcntl(listener.get(), F_GETFL) == flags);
  }
}

TEST_CASE("an accept that is cancelled leaves the next connection to others", "[backend]") {
  machine m;
  for (const int mode : {0, static_cast<int>(SOCK_NONBLOCK)}) {
    const fd listener = testing::make_listener(mode);
    trial given_up(verb::accept, listener.get());
    m.submit(given_up);
    m.look();
    CHECK(m.cancel(given_up) == -ECANCELED);
    const fd peer = testing::connect_to(testing::port_of(listener.get()));
    CHECK(testing::ready_now(listener.get(), POLLIN));
    trial next(verb::accept, listener.get());
    CHECK(fd(m.perform(next)));
  }
}

TEST_CASE("a connect reaches its listener and leaves the socket's mode and timeout as they were",
          "[backend]") {
  machine m;
  for (const int mode : {0, static_cast<int>(SOCK_NONBLOCK)}) {
    INFO("socket's mode " << mode);
    const fd listener = testing::make_listener();
    const fd socket = testing::make_tcp_socket(mode);
    const timeval patience{7, 250'000};
    ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    const int flags = ::fcntl(socket.get(), F_GETFL);
    const auto address = testing::loopback_address(testing::port_of(listener.get()));
    trial connect;
    describe_connect(connect, socket.get(), address);
    CHECK(m.perform(connect) == 0);
    const fd accepted(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    REQUIRE(accepted);
    put(socket.get(), "hello");
    char text[5];
    CHECK(::recv(accepted.get(), text, sizeof text, MSG_WAITALL) == 5);
    CHECK(::fcntl(socket.get(), F_GETFL) == flags);
    timeval after{};
    socklen_t size = sizeof after;
    ::getsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &after, &size);
    CHECK(after.tv_sec == 7);
    CHECK(after.tv_usec / 10'000 == 25);  // the kernel counts in ticks
  }
}

TEST_CASE("a connect to where nobody listens is refused", "[backend]") {
  machine m;
  for (const int mode : {0, static_cast<int>(SOCK_NONBLOCK)}) {
    const fd socket = testing::make_tcp_socket(mode);
    const auto address = testing::loopback_address(testing::unused_port());
    trial connect;
    describe_connect(connect, socket.get(), address);
    CHECK(m.perform(connect) == -ECONNREFUSED);
  }
}

TEST_CASE("a connect that waits can be cancelled, and does not restore the timeout late",
          "[backend]") {
  machine m;
  for (const int mode : {0, static_cast<int>(SOCK_NONBLOCK)}) {
    INFO("socket's mode " << mode);
    const full_listener busy;
    const fd socket = testing::make_tcp_socket(mode);
    trial connect;
    describe_connect(connect, socket.get(), busy.address);
    m.submit(connect);
    m.look();
    CHECK(connect.ends == 0);
    timeval during{};
    socklen_t size = sizeof during;
    ::getsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &during, &size);
    CHECK(during.tv_sec == 0);
    CHECK(during.tv_usec == 0);
    CHECK(m.cancel(connect) == -ECANCELED);
  }
}

TEST_CASE("a signal does not end a connect", "[backend]") {
  machine m;
  const counted_signal alarms(SIGALRM);
  const full_listener busy;
  const std::size_t rounds = testing::scaled(2'000, 100);
  for (std::size_t round = 0; round < rounds; ++round) {
    const fd socket = testing::make_tcp_socket();
    trial connect;
    describe_connect(connect, socket.get(), busy.address);
    const itimerval soon{{0, 30}, {0, 300}};
    ::setitimer(ITIMER_REAL, &soon, nullptr);
    m.submit(connect);
    m.look();
    const itimerval never{};
    ::setitimer(ITIMER_REAL, &never, nullptr);
    CAPTURE(round, connect.op.result);
    REQUIRE(connect.ends == 0);
    REQUIRE(m.cancel(connect) == -ECANCELED);
  }
}

TEST_CASE("a cancelled operation comes back once, and nothing of it has happened", "[backend]") {
  machine m;
  for (connected& each : all_kinds()) {
    for (const verb kind : reading_verbs(each.socket)) {
      INFO(each.kind << ", verb " << static_cast<int>(kind));
      block into(8);
      trial read;
      into.describe(read, kind, each.ends.first());
      m.submit(read);
      m.look();
      CHECK(m.cancel(read) == -ECANCELED);
      put(each.ends.second(), "later");
      m.look();
      CHECK(read.ends == 1);
      CHECK(into.bytes == "........");
      CHECK(testing::take_all(each.ends.first()) == "later");
    }
    testing::fill(each.ends.second());
    for (const verb kind : writing_verbs(each.socket)) {
      INFO(each.kind << ", verb " << static_cast<int>(kind));
      block text(8, 'n');
      trial write;
      text.describe(write, kind, each.ends.second());
      m.submit(write);
      m.look();
      CHECK(m.cancel(write) == -ECANCELED);
    }
    CHECK(testing::take_all(each.ends.first()).find('n') == std::string::npos);
  }
}

TEST_CASE("a cancel right after the submission is a cancel", "[backend]") {
  machine m;
  auto ends = make_pipe();
  char byte = '.';
  trial read(verb::read, ends.first(), &byte, 1);
  m.submit(read);
  CHECK(m.cancel(read) == -ECANCELED);
}

TEST_CASE("a second cancel changes nothing", "[backend]") {
  machine m;
  auto ends = make_pipe();
  char byte = '.';
  trial read(verb::read, ends.first(), &byte, 1);
  m.submit(read);
  m.look();
  m.kernel().cancel(read.op);
  m.kernel().cancel(read.op);
  CHECK(m.cancel(read) == -ECANCELED);
}

TEST_CASE("a cancel either comes too late and loses nothing, or in time and takes nothing",
          "[backend]") {
  machine m;
  const std::size_t rounds = testing::scaled(100'000, testing::under_tsan ? 1'000 : 5'000);
  for (connected& each : all_kinds()) {
    INFO(each.kind);
    int delivered = 0;
    for (std::size_t round = 0; round < rounds; ++round) {
      char byte = '.';
      trial read(verb::read, each.ends.first(), &byte, 1);
      m.submit(read);
      if ((round & 1) != 0) m.poll(time_point::min());
      if ((round & 2) != 0) put(each.ends.second(), "x");
      if ((round & 8) != 0 && (round & 2) != 0) m.poll(time_point::min());
      if (read.ends == 0) {
        m.kernel().cancel(read.op);
        if ((round & 4) != 0) m.kernel().cancel(read.op);
      }
      if ((round & 2) == 0) put(each.ends.second(), "x");
      const std::int32_t result = m.result_of(read);
      const std::string left = testing::take_all(each.ends.first());
      if (result == 1) {
        ++delivered;
        REQUIRE(byte == 'x');
        REQUIRE(left.empty());
      } else {
        REQUIRE(result == -ECANCELED);
        REQUIRE(byte == '.');
        REQUIRE(left == "x");
      }
    }
    CHECK(delivered > 0);
    if (!testing::kernel_acts_any_time()) CHECK(static_cast<std::size_t>(delivered) < rounds);
  }
}

TEST_CASE("a poll is over at its deadline and never before", "[backend]") {
  machine m;
  for (const auto span : {0us, 1us, 50us, 500us, 1'500us, 2'500us, 5'000us, 12'000us}) {
    INFO("span " << span.count() << " us");
    const time_point deadline = m.kernel().now() + span;
    m.poll(deadline);
    CHECK(m.kernel().now() >= deadline);
  }
}

TEST_CASE("a poll with an operation under way keeps its deadline too", "[backend]") {
  machine m;
  auto ends = make_pipe();
  char byte = '.';
  trial read(verb::read, ends.first(), &byte, 1);
  m.submit(read);
  for (const auto span : {100us, 1'000us, 5'000us, 100us}) {
    const time_point deadline = m.kernel().now() + span;
    m.poll(deadline);
    CHECK(m.kernel().now() >= deadline);
    CHECK(read.ends == 0);
  }
  CHECK(m.cancel(read) == -ECANCELED);
}

TEST_CASE("a poll keeps its deadline also when an operation must be looked at again", "[backend]") {
  machine m;
  const fd listener = testing::make_listener(SOCK_NONBLOCK);
  trial accept(verb::accept, listener.get());
  m.submit(accept);
  const time_point deadline = m.kernel().now() + 5ms;
  m.poll(deadline);
  CHECK(m.kernel().now() >= deadline);
  CHECK(accept.ends == 0);
  CHECK(m.cancel(accept) == -ECANCELED);
}

TEST_CASE("a poll does not end at the deadline of the one before", "[backend]") {
  machine m;
  for (int i = 0; i < 5; ++i) {
    m.wake();
    m.poll(m.kernel().now() + 1ms);
    const time_point deadline = m.kernel().now() + 6ms;
    m.poll(deadline);
    CHECK(m.kernel().now() >= deadline);
  }
}

TEST_CASE("a deadline that has passed, and an earlier one after a later one, are kept",
          "[backend]") {
  machine m;
  m.poll(m.kernel().now() - 1s);
  m.poll(time_point());
  const auto start = m.kernel().now();
  m.wake();
  m.poll(start + 1h);
  const time_point soon = m.kernel().now() + 1ms;
  m.poll(soon);
  CHECK(m.kernel().now() >= soon);
  CHECK(m.kernel().now() < start + 1h);
}

TEST_CASE("a poll that must not wait does not", "[backend]") {
  machine m;
  auto ends = make_pipe();
  char byte = '.';
  trial read(verb::read, ends.first(), &byte, 1);
  m.submit(read);
  for (int i = 0; i < 100; ++i) m.poll(time_point::min());
  CHECK(read.ends == 0);
  put(ends.second(), "x");
  m.look();
  CHECK(read.ends == 1);
}

TEST_CASE("a write to the wake descriptor ends a poll that waits, from any thread", "[backend]") {
  machine m;
  const std::size_t rounds = testing::scaled(100'000, 2'000);
  std::atomic<std::size_t> polling{0};
  std::thread other([&] {
    for (std::size_t round = 1; round <= rounds; ++round) {
      while (polling.load() < round) std::this_thread::yield();
      m.wake();
    }
  });
  for (std::size_t round = 1; round <= rounds; ++round) {
    polling.store(round);
    m.poll(time_point::max());
  }
  other.join();
}

TEST_CASE("one wake ends one poll", "[backend]") {
  machine m;
  m.wake();
  m.wake();
  m.poll(time_point::max());
  const time_point deadline = m.kernel().now() + 3ms;
  m.poll(deadline);
  CHECK(m.kernel().now() >= deadline);
}

TEST_CASE("a wake that comes while operations are being submitted is not lost", "[backend]") {
  backend_options small;
  small.submissions = 4;
  small.completions = 8;
  machine m(small);
  const fd events(::eventfd(0, EFD_CLOEXEC));
  std::uint64_t value = 0;
  std::deque<trial> reads;
  m.wake();
  for (int i = 0; i < 20; ++i) {
    m.submit(reads.emplace_back(verb::read, events.get(), &value, sizeof value));
  }
  m.poll(time_point::max());
  for (trial& each : reads) m.kernel().cancel(each.op);
  for (trial& each : reads) CHECK(m.result_of(each) == -ECANCELED);
}

TEST_CASE("a signal ends a poll without any harm", "[backend]") {
  machine m;
  const counted_signal alarms(SIGALRM);
  auto ends = make_pipe();
  char byte = '.';
  trial read(verb::read, ends.first(), &byte, 1);
  m.submit(read);
  const itimerval soon{{0, 0}, {0, 2'000}};
  ::setitimer(ITIMER_REAL, &soon, nullptr);
  while (signals_seen == 0) m.poll(time_point::max());
  CHECK(read.ends == 0);
  put(ends.second(), "x");
  CHECK(m.result_of(read) == 1);
}

TEST_CASE("more operations than either queue has room for all come back", "[backend]") {
  for (const unsigned submissions : {4U, 256U}) {
    for (const int mode : {0, static_cast<int>(EFD_NONBLOCK)}) {
      INFO("submissions " << submissions << ", mode " << mode);
      backend_options sizes;
      sizes.submissions = submissions;
      sizes.completions = submissions * 2;
      machine m(sizes);
      constexpr std::size_t count = 1'000;
      const fd events(::eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE | mode));
      std::vector<std::uint64_t> values(count);
      std::deque<trial> reads;
      for (std::uint64_t& value : values) {
        m.submit(reads.emplace_back(verb::read, events.get(), &value, sizeof value));
      }
      m.look();
      const std::uint64_t all = count;
      REQUIRE(::write(events.get(), &all, sizeof all) == sizeof all);
      for (trial& each : reads) m.wait_for(each);
      m.look();
      std::size_t right = 0;
      for (std::size_t i = 0; i < count; ++i) {
        right += reads[i].ends == 1 && reads[i].op.result == 8 && values[i] == 1 ? 1 : 0;
      }
      CHECK(right == count);
    }
  }
}

TEST_CASE("more cancellations than either queue has room for all arrive", "[backend]") {
  backend_options small;
  small.submissions = 4;
  small.completions = 8;
  machine m(small);
  auto ends = make_pipe();
  std::vector<char> bytes(1'000, '.');
  std::deque<trial> reads;
  for (char& byte : bytes) m.submit(reads.emplace_back(verb::read, ends.first(), &byte, 1U));
  for (trial& each : reads) m.kernel().cancel(each.op);
  for (trial& each : reads) m.wait_for(each);
  m.look();
  std::size_t right = 0;
  for (trial& each : reads) right += each.ends == 1 && each.op.result == -ECANCELED ? 1 : 0;
  CHECK(right == reads.size());
}

TEST_CASE("more completions at once than the queue has room for all come back", "[backend]") {
  backend_options small;
  small.submissions = 4;
  small.completions = 8;
  machine m(small);
  auto ends = make_pipe();
  put(ends.second(), "x");
  std::deque<trial> looks;
  for (int i = 0; i < 1'000; ++i) {
    m.submit(looks.emplace_back(verb::wait_fd, ends.first(), nullptr, 0, POLLIN));
  }
  for (trial& each : looks) m.wait_for(each);
  m.look();
  std::size_t right = 0;
  for (trial& each : looks) right += each.ends == 1 && each.op.result == POLLIN ? 1 : 0;
  CHECK(right == looks.size());
}

TEST_CASE("what nobody will read is an error and not a signal", "[backend]") {
  machine m;
  const counted_signal pipes(SIGPIPE);
  for (const bool waits : {false, true}) {
    for (connected& each : all_kinds()) {
      for (const verb kind : writing_verbs(each.socket)) {
        auto ends = each.make();
        INFO(each.kind << ", verb " << static_cast<int>(kind) << ", waits: " << waits);
        block text(8, 'x');
        trial write;
        text.describe(write, kind, ends.second());
        if (waits) {
          testing::fill(ends.second());
          m.submit(write);
          m.look();
          CHECK(write.ends == 0);
        }
        ends.close_first();
        if (!waits) m.submit(write);
        CHECK(m.result_of(write) == -EPIPE);
      }
    }
  }
  CHECK(signals_seen == 0);
}

TEST_CASE("a signal that was pending before a write is pending afterwards, and no other",
          "[backend]") {
  machine m;
  sigset_t pipes;
  sigset_t before;
  ::sigemptyset(&pipes);
  ::sigaddset(&pipes, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &pipes, &before);
  auto ends = make_pipe();
  ends.close_first();
  char byte = 'x';
  {
    trial write(verb::write, ends.second(), &byte, 1);
    CHECK(m.perform(write) == -EPIPE);
    CHECK_FALSE(is_pending(SIGPIPE));
  }
  ::raise(SIGPIPE);
  {
    trial write(verb::write, ends.second(), &byte, 1);
    CHECK(m.perform(write) == -EPIPE);
    CHECK(is_pending(SIGPIPE));
  }
  const timespec at_once{};
  ::sigtimedwait(&pipes, nullptr, &at_once);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST_CASE("waiting for readiness tells what of the mask is so", "[backend]") {
  machine m;
  const auto ready_for = [&](int fd, int mask) {
    trial look(verb::wait_fd, fd, nullptr, 0, mask);
    return m.perform(look);
  };
  auto pipe = make_pipe();
  CHECK(ready_for(pipe.second(), POLLOUT) == POLLOUT);
  put(pipe.second(), "x");
  CHECK(ready_for(pipe.first(), POLLIN) == POLLIN);
  auto socket = make_socket_pair();
  CHECK(ready_for(socket.first(), POLLIN | POLLOUT) == POLLOUT);
  put(socket.second(), "x");
  CHECK(ready_for(socket.first(), POLLIN | POLLOUT) == (POLLIN | POLLOUT));
  const fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  CHECK(ready_for(null.get(), POLLIN | POLLOUT) == (POLLIN | POLLOUT));
  CHECK(ready_for(null.get(), POLLIN) == POLLIN);
  const fd file(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  CHECK(ready_for(file.get(), POLLIN) == POLLIN);
}

TEST_CASE("waiting for readiness ends when the other side goes", "[backend]") {
  machine m;
  for (const bool waits : {false, true}) {
    INFO("waits: " << waits);
    auto read_side = make_pipe();
    trial hangup(verb::wait_fd, read_side.first(), nullptr, 0, POLLIN);
    auto write_side = make_pipe();
    testing::fill(write_side.second());
    trial error(verb::wait_fd, write_side.second(), nullptr, 0, POLLOUT);
    auto socket = make_socket_pair();
    trial both(verb::wait_fd, socket.first(), nullptr, 0, POLLIN);
    if (waits) {
      m.submit(hangup);
      m.submit(error);
      m.submit(both);
      m.look();
      CHECK(hangup.ends + error.ends + both.ends == 0);
    }
    read_side.close_second();
    write_side.close_first();
    socket.close_second();
    if (!waits) {
      m.submit(hangup);
      m.submit(error);
      m.submit(both);
    }
    CHECK(m.result_of(hangup) == POLLHUP);
    CHECK((m.result_of(error) & POLLERR) != 0);
    CHECK(m.result_of(both) == (POLLIN | POLLHUP));
  }
}

TEST_CASE("waiting for readiness waits for what was asked for and takes nothing", "[backend]") {
  machine m;
  auto socket = make_socket_pair();
  trial in(verb::wait_fd, socket.first(), nullptr, 0, POLLIN);
  m.submit(in);  // it is writable all the time
  m.look();
  CHECK(in.ends == 0);
  put(socket.second(), "abc");
  CHECK(m.result_of(in) == POLLIN);
  CHECK(testing::take_all(socket.first()) == "abc");

  trial given_up(verb::wait_fd, socket.first(), nullptr, 0, POLLIN);
  m.submit(given_up);
  m.look();
  CHECK(m.cancel(given_up) == -ECANCELED);
}

TEST_CASE("eventfd and timerfd are descriptors like any other", "[backend]") {
  machine m;
  for (const int mode : {0, static_cast<int>(EFD_NONBLOCK)}) {
    INFO("mode " << mode);
    const fd events(::eventfd(0, EFD_CLOEXEC | mode));
    std::uint64_t value = 0;
    trial read(verb::read, events.get(), &value, sizeof value);
    m.submit(read);
    m.look();
    CHECK(read.ends == 0);
    std::uint64_t three = 3;
    trial write(verb::write, events.get(), &three, sizeof three);
    CHECK(m.perform(write) == 8);
    CHECK(m.result_of(read) == 8);
    CHECK(value == 3);

    const fd timer(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | (mode != 0 ? TFD_NONBLOCK : 0)));
    const itimerspec soon{{0, 0}, {0, 1'000'000}};
    ::timerfd_settime(timer.get(), 0, &soon, nullptr);
    trial wait(verb::wait_fd, timer.get(), nullptr, 0, POLLIN);
    CHECK(m.perform(wait) == POLLIN);
    trial ticks(verb::read, timer.get(), &value, sizeof value);
    CHECK(m.perform(ticks) == 8);
    CHECK(value == 1);
  }
}

TEST_CASE("operations of one stream follow one another", "[backend]") {
  machine m;
  auto ends = make_socket_pair();
  const std::uint64_t stream = new_stream();
  for (int round = 0; round < 100; ++round) {
    INFO("round " << round);
    char byte = '.';
    trial read(verb::recv, ends.first(), &byte, 1);
    read.op.stream = stream;
    read.op.drained = (round & 1) != 0;
    const bool there_already = (round & 2) != 0;
    if (there_already) put(ends.second(), "x");
    m.submit(read);
    if (!there_already) {
      m.look();
      REQUIRE(read.ends == 0);
      put(ends.second(), "x");
    }
    REQUIRE(m.result_of(read) == 1);
    REQUIRE(byte == 'x');

    trial given_up(verb::recv, ends.first(), &byte, 1);
    given_up.op.stream = stream;
    m.submit(given_up);
    if ((round & 4) != 0) m.look();
    REQUIRE(m.cancel(given_up) == -ECANCELED);

    trial send(verb::send, ends.first(), &byte, 1, MSG_NOSIGNAL);
    send.op.stream = stream;
    send.op.drained = (round & 8) != 0;
    REQUIRE(m.perform(send) == 1);
    REQUIRE(testing::take_all(ends.second()) == "x");
  }
}

TEST_CASE("a stream on a recycled descriptor, or on another backend, starts anew", "[backend]") {
  machine first;
  machine second;
  const std::uint64_t travelling = new_stream();
  auto stays = make_socket_pair();
  for (int round = 0; round < 20; ++round) {
    INFO("round " << round);
    char byte = '.';
    {
      auto ends = make_socket_pair();
      trial read(verb::recv, ends.first(), &byte, 1);
      read.op.stream = new_stream();
      read.op.drained = true;
      first.submit(read);
      first.look();
      REQUIRE(read.ends == 0);
      put(ends.second(), "x");
      REQUIRE(first.result_of(read) == 1);
    }
    machine& here = (round & 1) != 0 ? second : first;
    trial read(verb::recv, stays.first(), &byte, 1);
    read.op.stream = travelling;
    read.op.drained = true;
    here.submit(read);
    here.look();
    REQUIRE(read.ends == 0);
    put(stays.second(), "y");
    REQUIRE(here.result_of(read) == 1);
  }
}

TEST_CASE("a stream that was closed leaves nothing behind, though a duplicate lives on",
          "[backend]") {
  const bool elsewhere = GENERATE(false, true);
  machine m;
  std::vector<fd> duplicates;
  std::deque<connected> streams;
  for (int i = 0; i < 4; ++i) {
    auto& ends = streams.emplace_back("a stream", true, 0).ends;
    char byte = '.';
    trial read(verb::recv, ends.first(), &byte, 1);
    read.op.stream = new_stream();
    read.op.drained = true;
    m.submit(read);
    m.look();
    put(ends.second(), "x");
    while (read.ends == 0) m.poll(time_point::min());
  }
  for (int i = 0; i < 4; i += 2) {
    duplicates.emplace_back(::dup(streams[static_cast<std::size_t>(i)].ends.first()));
  }
  for (connected& each : streams) {
    if (elsewhere) {
      const detail::closing_elsewhere guard;
      each.ends.close_first();
    } else {
      m.kernel().forget(each.ends.first());
      each.ends.close_first();
    }
  }
  for (int round = 0; round < 3; ++round) {
    for (connected& each : streams) (void)::send(each.ends.second(), "y", 1, MSG_NOSIGNAL);
    m.look();
    auto ends = make_socket_pair();
    char byte = '.';
    trial read(verb::recv, ends.first(), &byte, 1);
    read.op.stream = new_stream();
    m.submit(read);
    m.look();
    CHECK(read.ends == 0);
    put(ends.second(), "z");
    CHECK(m.result_of(read) == 1);
    CHECK(byte == 'z');
    m.kernel().forget(ends.first());
  }
}

TEST_CASE("what was submitted is with the kernel after the next poll", "[backend]") {
  machine m;
  auto ends = make_pipe();
  char byte = 'x';
  trial write(verb::write, ends.second(), &byte, 1);
  m.submit(write);
  m.poll(time_point::min());
  CHECK(testing::take_all(ends.first()) == "x");
  CHECK(m.result_of(write) == 1);
}

TEST_CASE("a backend can be made, used and thrown away many times without a trace", "[backend]") {
  {
    machine warm;
  }
  const std::size_t before = testing::open_descriptors();
  for (int i = 0; i < 20; ++i) {
    machine m;
    auto ends = make_pipe();
    char byte = 'x';
    put(ends.second(), "x");
    trial read(verb::read, ends.first(), &byte, 1);
    REQUIRE(m.perform(read) == 1);
  }
  CHECK(testing::open_descriptors() == before);
}
