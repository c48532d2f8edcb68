// SPDX-License-Identifier: MIT
// Loops of calls that never have to wait: motet/io/io.hpp.
#include "cancellation/endless_io.hpp"

#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cstdio>
#include <system_error>

#include "cancellation/endless_loop.hpp"

namespace {

using namespace testing;

iovec vector_of_one() {
  return {single.data(), single.size()};
}

msghdr message_in(iovec& vector) {
  msghdr message{};
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  return message;
}

/// A child that has ended, and that is reaped in the end.
struct ended_child {
  pid_t child = ::fork();
  ended_child() {
    if (child == 0) ::_exit(0);
    pidfd = fd(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  }
  ended_child(const ended_child&) = delete;
  ended_child& operator=(const ended_child&) = delete;
  ~ended_child() { ::waitpid(child, nullptr, 0); }
  fd pidfd;
};

const switchpoint_table table = {
    {"io::read",
     [](endless_loop& again) { again([source = zeros()] { io::read(source.get(), single); }); }},
    {"io::read, nothing",
     [](endless_loop& again) { again([source = zeros()] { io::read(source.get(), no_room); }); }},
    {"io::read, with a code",
     [](endless_loop& again) {
       again([source = zeros()] {
         std::error_code error;
         io::read(source.get(), single, error);
         return error;
       });
     }},
    {"io::read, nothing, with a code",
     [](endless_loop& again) {
       again([source = zeros()] {
         std::error_code error;
         io::read(source.get(), no_room, error);
         return error;
       });
     }},
    {"io::write",
     [](endless_loop& again) { again([target = zeros()] { io::write(target.get(), single); }); }},
    {"io::write, nothing",
     [](endless_loop& again) { again([target = zeros()] { io::write(target.get(), no_bytes); }); }},
    {"io::readv",
     [](endless_loop& again) {
       const iovec vector = vector_of_one();
       again([&, source = zeros()] { io::readv(source.get(), std::span(&vector, 1)); });
     }},
    {"io::readv, nothing",
     [](endless_loop& again) { again([source = zeros()] { io::readv(source.get(), {}); }); }},
    {"io::writev",
     [](endless_loop& again) {
       const iovec vector = vector_of_one();
       again([&, target = zeros()] { io::writev(target.get(), std::span(&vector, 1)); });
     }},
    {"io::writev, nothing",
     [](endless_loop& again) { again([target = zeros()] { io::writev(target.get(), {}); }); }},
    {"io::read_exactly",
     [](endless_loop& again) {
       again([source = zeros()] { io::read_exactly(source.get(), single); });
     }},
    {"io::read_exactly, nothing",
     [](endless_loop& again) {
       again([source = zeros()] { io::read_exactly(source.get(), no_room); });
     }},
    {"io::read_exactly, nothing, with a code",
     [](endless_loop& again) {
       again([source = zeros()] {
         std::error_code error;
         io::read_exactly(source.get(), no_room, error);
         return error;
       });
     }},
    {"io::write_all",
     [](endless_loop& again) {
       again([target = zeros()] { io::write_all(target.get(), single); });
     }},
    {"io::write_all, nothing",
     [](endless_loop& again) {
       again([target = zeros()] { io::write_all(target.get(), no_bytes); });
     }},
    {"io::write_all, nothing, with a code",
     [](endless_loop& again) {
       again([target = zeros()] {
         std::error_code error;
         io::write_all(target.get(), no_bytes, error);
         return error;
       });
     }},
    {"io::recv",
     [](endless_loop& again) {
       const auto ends = ended_socket();
       again([&] { io::recv(ends.first(), single); });
     }},
    {"io::recv, nothing",
     [](endless_loop& again) {
       const auto ends = ended_socket();
       again([&] { io::recv(ends.first(), no_room); });
     }},
    {"io::recv, would block, with a code",
     [](endless_loop& again) {
       const auto ends = make_socket_pair();
       again([&] {
         std::error_code error;
         io::recv(ends.first(), single, MSG_DONTWAIT, error);
         return error;
       });
     }},
    {"io::recvmsg",
     [](endless_loop& again) {
       const auto ends = ended_socket();
       iovec vector = vector_of_one();
       msghdr message = message_in(vector);
       again([&] { io::recvmsg(ends.first(), message); });
     }},
    {"io::send",
     [](endless_loop& again) {
       const auto ends = make_socket_pair();
       again([&] {
         io::send(ends.first(), single);
         ::recv(ends.second(), single.data(), single.size(), 0);
       });
     }},
    {"io::send, nothing",
     [](endless_loop& again) {
       const auto ends = make_socket_pair();
       again([&] { io::send(ends.first(), no_bytes); });
     }},
    {"io::sendmsg",
     [](endless_loop& again) {
       const auto ends = make_socket_pair();
       iovec vector = vector_of_one();
       const msghdr message = message_in(vector);
       again([&] {
         io::sendmsg(ends.first(), message);
         ::recv(ends.second(), single.data(), single.size(), 0);
       });
     }},
    {"io::accept",
     [](endless_loop& again) {
       unix_listening listens;
       again([&] {
         const fd comes = listens.knock();
         const fd accepted(io::accept(listens.get()));
       });
     }},
    {"io::connect",
     [](endless_loop& again) {
       unix_listening listens;
       again([&] {
         const fd comes = unix_listening::make();
         io::connect(comes.get(), listens.address(), listens.size());
         listens.answer();
       });
     }},
    {"io::wait_fd",
     [](endless_loop& again) {
       const auto ends = make_pipe();
       again([&] { io::wait_fd(ends.second(), POLLOUT); });
     }},
    {"io::splice",
     [](endless_loop& again) {
       auto source = make_pipe();
       const auto target = make_pipe();
       source.close_second();
       again([&] { io::splice(source.first(), target.second(), 1); });
     }},
    {"io::splice, nothing",
     [](endless_loop& again) {
       const auto source = make_pipe();
       const auto target = make_pipe();
       again([&] { io::splice(source.first(), target.second(), 0); });
     }},
    {"io::tee",
     [](endless_loop& again) {
       auto source = make_pipe();
       const auto target = make_pipe();
       source.close_second();
       again([&] { io::tee(source.first(), target.second(), 1); });
     }},
    {"io::tee, nothing",
     [](endless_loop& again) {
       const auto source = make_pipe();
       const auto target = make_pipe();
       again([&] { io::tee(source.first(), target.second(), 0); });
     }},
    {"io::waitid",
     [](endless_loop& again) {
       const ended_child child;
       again([&] { io::waitid(child.pidfd.get(), WEXITED | WNOWAIT); });
     }},
    {"io::waitid, with a code",
     [](endless_loop& again) {
       const ended_child child;
       again([&] {
         std::error_code error;
         io::waitid(child.pidfd.get(), WEXITED | WNOWAIT, error);
         return error;
       });
     }},
};

}  // namespace

ENDLESS_LOOPS_END(table)
