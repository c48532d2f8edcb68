// SPDX-License-Identifier: MIT
// Queues and semaphores of POSIX and of System V, the resolver and pclose(3) in a fiber have the
// results that they have on a thread.
#include <arpa/inet.h>
#include <arpa/nameser.h>
#include <mqueue.h>
#include <netdb.h>
#include <netinet/in.h>
#include <resolv.h>
#include <stdio.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <functional>
#include <motet/posix.hpp>
#include <string>
#include <utility>
#include <vector>

#include "posix/journal.hpp"

namespace {

using namespace testing;
using namespace std::chrono_literals;

/// A queue with room for one message, without a name.
struct queue {
  queue() {
    const std::string name = "/motet-posix-" + std::to_string(::getpid());
    mq_attr attributes{};
    attributes.mq_maxmsg = 1;
    attributes.mq_msgsize = 16;
    id = ::mq_open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600, &attributes);
    REQUIRE(id >= 0);
    ::mq_unlink(name.c_str());
  }
  ~queue() { ::mq_close(id); }
  queue(const queue&) = delete;
  queue& operator=(const queue&) = delete;
  mqd_t id = -1;
};

struct message {
  long type = 1;
  std::array<char, 8> text{};
};

/// A message queue and a semaphore of System V.
struct system_v {
  system_v() {
    REQUIRE((queue = ::msgget(IPC_PRIVATE, 0600)) >= 0);
    REQUIRE((semaphore = ::semget(IPC_PRIVATE, 1, 0600)) >= 0);
  }
  ~system_v() {
    ::msgctl(queue, IPC_RMID, nullptr);
    ::semctl(semaphore, 0, IPC_RMID);
  }
  system_v(const system_v&) = delete;
  system_v& operator=(const system_v&) = delete;
  void send() const {
    const message item{7, {"hello"}};
    REQUIRE(::msgsnd(queue, &item, sizeof item.text, 0) == 0);
  }
  void post() const {
    sembuf one{0, 1, 0};
    REQUIRE(::semop(semaphore, &one, 1) == 0);
  }
  int queue = -1;
  int semaphore = -1;
};

/// A name server that knows one address, after 20 ms, and answers `count` questions.
class name_server {
 public:
  explicit name_server(int count) : socket_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address_;
    auto* const generic = reinterpret_cast<sockaddr*>(&address_);
    REQUIRE(::bind(socket_.get(), generic, length) == 0);
    REQUIRE(::getsockname(socket_.get(), generic, &length) == 0);
    thread_ = std::thread([this, count] {
      for (int i = 0; i < count; ++i) answer();
    });
  }
  ~name_server() { thread_.join(); }
  name_server(const name_server&) = delete;
  name_server& operator=(const name_server&) = delete;

  /// The settings of a caller: this server, and no other.
  void serve(struct __res_state& state) const {
    state.nscount = 1;
    state.nsaddr_list[0] = address_;
    state.options &= ~static_cast<unsigned long>(RES_DNSRCH | RES_DEFNAMES);
  }

 private:
  void answer() {
    std::vector<unsigned char> packet(512);
    sockaddr_in peer{};
    socklen_t length = sizeof peer;
    auto* const generic = reinterpret_cast<sockaddr*>(&peer);
    const ssize_t size =
        ::recvfrom(socket_.get(), packet.data(), packet.size(), 0, generic, &length);
    if (size < 12) return;
    packet.resize(static_cast<std::size_t>(size));
    const std::string_view question(reinterpret_cast<const char*>(packet.data()), packet.size());
    const bool is_known = question.find("known") != std::string_view::npos;
    packet[2] = 0x81;  // an answer
    packet[3] = is_known ? 0x80 : 0x83;
    packet[11] = 0;  // additional records
    if (is_known) {
      packet[7] = 1;
      const std::array<unsigned char, 16> record{0xc0, 12, 0, 1, 0,   1, 0, 0,
                                                 0,    60, 0, 4, 127, 0, 0, 9};
      packet.insert(packet.end(), record.begin(), record.end());
    }
    std::this_thread::sleep_for(20ms);
    ::sendto(socket_.get(), packet.data(), packet.size(), 0, generic, length);
  }

  const motet::fd socket_;
  sockaddr_in address_{};
  std::thread thread_;
};

void note_answer(journal& log, const char* name, int size, const unsigned char* answer) {
  log.number(name, size);
  if (size < 4) {
    log.number("h_errno", h_errno);
    return;
  }
  log.text("address", std::to_string(answer[size - 4]) + "." + std::to_string(answer[size - 1]));
}

}  // namespace

TEST_CASE("mq_receive() and mq_send() in a fiber wait for a message and for room") {
  compare_waiting([](journal& log) {
    const queue with;
    std::array<char, 16> buffer{};
    unsigned priority = 0;
    {
      const later sender([&] { REQUIRE(::mq_send(with.id, "first", 5, 3) == 0); });
      log.call("receive", ::mq_receive(with.id, buffer.data(), buffer.size(), &priority));
    }
    log.text("data", {buffer.data(), 5});
    log.number("priority", priority);
    log.call("send", ::mq_send(with.id, "second", 6, 0));
    {
      const later receiver([&] {
        std::array<char, 16> other{};
        REQUIRE(::mq_receive(with.id, other.data(), other.size(), nullptr) == 6);
      });
      log.call("send", ::mq_send(with.id, "third", 5, 0));
    }
    timespec limit = time_after(CLOCK_REALTIME, 20ms);
    log.call("timed send", ::mq_timedsend(with.id, "fourth", 6, 0, &limit));
    log.call("receive", ::mq_receive(with.id, buffer.data(), buffer.size(), nullptr));
    limit = time_after(CLOCK_REALTIME, 20ms);
    log.call("timed receive",
             ::mq_timedreceive(with.id, buffer.data(), buffer.size(), nullptr, &limit));
    log.call("small buffer", ::mq_receive(with.id, buffer.data(), 1, nullptr));
    log.call("large message", ::mq_send(with.id, "a message too large", 19, 0));
    const timespec wrong{0, -1};
    log.call("wrong limit",
             ::mq_timedreceive(with.id, buffer.data(), buffer.size(), nullptr, &wrong));
    log.call("no queue", ::mq_receive(-1, buffer.data(), buffer.size(), nullptr));
    const motet::fd file(::open("/dev/null", O_RDWR | O_CLOEXEC));
    log.call("no queue", ::mq_send(file.get(), "x", 1, 0));
    mq_attr mode{};
    mode.mq_flags = O_NONBLOCK;
    ::mq_setattr(with.id, &mode, nullptr);
    log.call("receive", ::mq_receive(with.id, buffer.data(), buffer.size(), nullptr));
    limit = time_after(CLOCK_REALTIME, 1s);
    log.call("timed receive",
             ::mq_timedreceive(with.id, buffer.data(), buffer.size(), nullptr, &limit));
  });
}

TEST_CASE("mq_close() ends the calls of other fibers with EBADF") {
  motet::run([] {
    queue with;
    motet::fiber<void> receiver = motet::spin([&] {
      std::array<char, 16> buffer{};
      CHECK(::mq_receive(with.id, buffer.data(), buffer.size(), nullptr) == -1);
      CHECK(errno == EBADF);
    });
    motet::sleep_for(5ms);
    CHECK(::mq_close(std::exchange(with.id, -1)) == 0);
    receiver.await();
  });
}

TEST_CASE("msgrcv() and msgsnd() in a fiber wait for a message and for room") {
  compare_waiting([](journal& log) {
    const system_v with;
    message received;
    {
      const later sender([&] { with.send(); });
      log.call("receive", ::msgrcv(with.queue, &received, sizeof received.text, 7, 0));
    }
    log.text("data", received.text.data());
    log.call("none", ::msgrcv(with.queue, &received, sizeof received.text, 0, IPC_NOWAIT));
    msqid_ds limits{};
    REQUIRE(::msgctl(with.queue, IPC_STAT, &limits) == 0);
    limits.msg_qbytes = sizeof received.text;
    REQUIRE(::msgctl(with.queue, IPC_SET, &limits) == 0);
    with.send();
    log.call("full", ::msgsnd(with.queue, &received, sizeof received.text, IPC_NOWAIT));
    {
      const later receiver([&] {
        message other;
        REQUIRE(::msgrcv(with.queue, &other, sizeof other.text, 0, 0) > 0);
      });
      log.call("send", ::msgsnd(with.queue, &received, sizeof received.text, 0));
    }
    log.call("copy", ::msgrcv(with.queue, &received, sizeof received.text, 0, MSG_COPY));
    log.call("too small", ::msgrcv(with.queue, &received, 1, 0, 0));
    log.call("no queue", ::msgrcv(-1, &received, sizeof received.text, 0, 0));
    received.type = 0;
    log.call("no type", ::msgsnd(with.queue, &received, sizeof received.text, 0));
    {
      const later remover([&] { ::msgctl(with.queue, IPC_RMID, nullptr); });
      log.call("removed", ::msgrcv(with.queue, &received, sizeof received.text, 99, 0));
    }
  });
}

TEST_CASE("semtimedop() and semop() in a fiber wait for the semaphore") {
  compare_waiting([](journal& log) {
    const system_v with;
    sembuf take{0, -1, 0};
    {
      const later poster([&] { with.post(); });
      log.call("semop", ::semop(with.semaphore, &take, 1));
    }
    const timespec limit{0, 20'000'000};
    log.call("semtimedop", ::semtimedop(with.semaphore, &take, 1, &limit));
    take.sem_flg = IPC_NOWAIT;
    log.call("semop", ::semop(with.semaphore, &take, 1));
    take.sem_flg = 0;
    log.call("semop", ::semop(-1, &take, 1));
    log.call("semop", ::semop(with.semaphore, &take, 0));
    const timespec wrong{0, -1};
    log.call("semtimedop", ::semtimedop(with.semaphore, &take, 1, &wrong));
    std::vector<sembuf> many(501, take);
    log.call("semop", ::semop(with.semaphore, many.data(), many.size()));
    with.post();
    std::array<sembuf, 2> both{{{0, -1, SEM_UNDO}, {0, 1, SEM_UNDO}}};
    log.call("semop", ::semop(with.semaphore, both.data(), both.size()));
    log.number("value", ::semctl(with.semaphore, 0, GETVAL));
  });
}

TEST_CASE("pclose() in a fiber waits for the command") {
  compare_waiting([](journal& log) {
    FILE* const command = ::popen("sleep 0.02; exit 7", "r");
    REQUIRE(command != nullptr);
    log.number("status", WEXITSTATUS(::pclose(command)));
  });
  motet::run([] {
    CHECK(!motet::move_on_after(5ms, [] {
      FILE* const command = ::popen("sleep 0.03; exit 7", "r");
      CHECK(WEXITSTATUS(::pclose(command)) == 7);
      motet::snooze();
    }));
  });
}

TEST_CASE("res_nquery() and res_nsearch() in a fiber ask the caller's name servers") {
  compare_waiting([](journal& log) {
    const name_server server(5);
    struct __res_state state{};
    REQUIRE(::res_ninit(&state) == 0);
    server.serve(state);
    std::array<unsigned char, 512> answer{};
    const auto size = static_cast<int>(answer.size());
    int length = ::res_nquery(&state, "known.test", ns_c_in, ns_t_a, answer.data(), size);
    note_answer(log, "nquery", length, answer.data());
    length = ::res_nsearch(&state, "known.test", ns_c_in, ns_t_a, answer.data(), size);
    note_answer(log, "nsearch", length, answer.data());
    length = ::res_nquerydomain(&state, "known", "test", ns_c_in, ns_t_a, answer.data(), size);
    note_answer(log, "nquerydomain", length, answer.data());
    answer = {};
    length = ::res_nquery(&state, "other.test", ns_c_in, ns_t_a, answer.data(), size);
    note_answer(log, "nquery", length, answer.data());
    log.number("code in the answer", answer[3] & 15);
    log.number("error in the state", state.res_h_errno);
    length =
        ::res_nquerydomain(&state, "known.test", nullptr, ns_c_in, ns_t_a, answer.data(), size);
    note_answer(log, "nquerydomain", length, answer.data());
    ::res_nclose(&state);
  });
}

TEST_CASE("res_query() and res_send() in a fiber use the settings of the thread") {
  compare_waiting([](journal& log) {
    const name_server server(4);
    REQUIRE(::res_init() == 0);
    server.serve(_res);
    std::array<unsigned char, 512> answer{};
    const auto size = static_cast<int>(answer.size());
    int length = ::res_query("known.test", ns_c_in, ns_t_a, answer.data(), size);
    note_answer(log, "query", length, answer.data());
    length = ::res_search("known.test", ns_c_in, ns_t_a, answer.data(), size);
    note_answer(log, "search", length, answer.data());
    length = ::res_querydomain("known", "test", ns_c_in, ns_t_a, answer.data(), size);
    note_answer(log, "querydomain", length, answer.data());
    std::array<unsigned char, 512> question{};
    const int asked = ::res_mkquery(ns_o_query, "known.test", ns_c_in, ns_t_a, nullptr, 0, nullptr,
                                    question.data(), size);
    length = ::res_send(question.data(), asked, answer.data(), size);
    note_answer(log, "send", length, answer.data());
    ::res_init();
  });
}

TEST_CASE("motet-posix: a time limit ends waits for queues and semaphores") {
  const queue posix_queue;
  const system_v with;
  std::array<char, 16> buffer{};
  message received;
  sembuf take{0, -1, 0};
  const std::vector<std::function<long()>> calls{
      [&] { return ::mq_receive(posix_queue.id, buffer.data(), buffer.size(), nullptr); },
      [&] { return ::msgrcv(with.queue, &received, sizeof received.text, 0, 0); },
      [&] { return long{::semop(with.semaphore, &take, 1)}; },
  };
  motet::run([&] {
    for (const auto& call : calls) {
      CHECK(!motet::move_on_after(20ms, [&] {
        CHECK(call() == -1);
        CHECK(errno == ECANCELED);
      }));
    }
  });
}
