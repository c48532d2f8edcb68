// SPDX-License-Identifier: MIT
// Programs that are started, spoken to, ended and seen to end.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <motet/motet.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/faults.hpp"
#include "catch.hpp"
#include "fixtures.hpp"
#include "io/scratch.hpp"
#include "sockets.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::error_of;
using testing::oops;
using testing::scratch_name;
using testing::until_waiting;

namespace {

process_options shell(const std::string& script) {
  return {.program = "sh", .args = {"-c", script}};
}

/// A program that ends only by a signal, with all its pipes.
process_options idle() {
  process_options what{.program = "sleep", .args = {"1000"}};
  what.in = what.out = what.err = standard_stream::pipe;
  return what;
}

/// Whether every child of this process has been reaped.
bool no_child_is_left() {
  return ::waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD;
}

std::string first_line(motet::pipe& from) {
  reader in(from);
  return std::string(in.line().value_or("(the end)"));
}

}  // namespace

TEST_CASE("a program's end is told as it was", "[process]") {
  run([] {
    CHECK(process::start(shell("exit 0")).wait());
    const exit_status seven = process::start(shell("sleep 0.01; exit 7")).wait();
    CHECK_FALSE(seven);
    CHECK(seven.code == 7);
    CHECK(seven.signal == 0);
    const exit_status killed = process::start(shell("kill -KILL $$")).wait();
    CHECK(killed.code == 137);
    CHECK(killed.signal == SIGKILL);
    process dead = process::start(shell("exit 3"));
    siginfo_t info{};
    ::waitid(P_PID, static_cast<id_t>(dead.id()), &info, WEXITED | WNOWAIT);
    CHECK(dead.wait().code == 3);
    CHECK(dead.wait().code == 3);
    CHECK_FALSE(dead.signal(SIGTERM));
    CHECK(dead.terminate().code == 3);
    CHECK(no_child_is_left());
  });
}

TEST_CASE("fibers run while a program does, and several may wait for its end", "[process]") {
  run([] {
    process_options what = shell("read line; exit 5");
    what.in = standard_stream::pipe;
    process both = process::start(what);
    auto first = spin([&] { return both.wait().code; });
    auto second = spin([&] { return both.wait().code; });
    auto given_up = spin([&] { both.wait(); });
    until_waiting(given_up);
    CHECK(given_up.raise(oops()));
    CHECK_THROWS_AS(given_up.await(), oops);
    sleep_for(1ms);
    CHECK(first.state() == fiber_state::waiting);
    both.in().write_all("\n");
    CHECK(first.await() == 5);
    CHECK(second.await() == 5);
  });
}

TEST_CASE("the standard streams of a program", "[process]") {
  run([] {
    const std::size_t before = testing::open_descriptors();
    {
      process_options what{.program = "cat"};
      what.in = what.out = standard_stream::pipe;
      process cat = process::start(what);
      for (const char* word : {"one\n", "two\n"}) {
        cat.in().write_all(word);
        CHECK(first_line(cat.out()) + "\n" == word);
      }
      cat.in().shutdown(SHUT_WR);
      CHECK(first_line(cat.out()) == "(the end)");
      CHECK(cat.wait());
      CHECK(cat.err().native_handle(SHUT_RD) == -1);

      const scratch_name place;
      const file target = file::open(place, O_RDWR | O_CREAT);
      process_options swapped = shell("echo out; echo err >&2; read line || echo nothing");
      swapped.in = standard_stream::null;
      swapped.out = standard_stream::pipe;
      swapped.err = standard_stream(target.native_handle());
      process last = process::start(swapped);
      reader out(last.out());
      CHECK(out.line() == "out");
      CHECK(out.line() == "nothing");
      CHECK(last.wait());
      CHECK(target.size() == 4);
    }
    CHECK(testing::open_descriptors() == before);
  });
}

TEST_CASE("a program has only its standard streams, its directory and its environment",
          "[process]") {
  run([] {
    const fd leaks(::open("/dev/null", O_RDONLY));
    // The directory itself is open while ls reads it.
    CHECK(run_command({.program = "ls", .args = {"/proc/self/fd"}}).out == "0\n1\n2\n3\n");
    process_options what = shell("pwd; echo $HOME$MORE");
    what.directory = "/usr/bin";
    what.environment = {"MORE=yes"};
    what.program = "/bin/sh";
    CHECK(run_command(what).out == "/usr/bin\nyes\n");
    what.program = "./env";
    what.args = {};
    CHECK(run_command(what).out == "MORE=yes\n");
  });
}

TEST_CASE("a program that cannot be started is an error of the parent", "[process]") {
  run([] {
    const std::size_t before = testing::open_descriptors();
    CHECK(error_of([] { process::start({.program = "no-such-program"}); }) ==
          std::errc::no_such_file_or_directory);
    CHECK(error_of([] { process::start({.program = "/etc/passwd"}); }) ==
          std::errc::permission_denied);
    CHECK(error_of([] { process::start({.program = "/"}); }) == std::errc::permission_denied);
    process_options lost = shell("exit 0");
    lost.directory = "/no/such/place";
    CHECK(error_of([&] { process::start(lost); }) == std::errc::no_such_file_or_directory);
    try {
      process::start(lost);
    } catch (const std::system_error& refused) {
      CHECK(std::string(refused.what()).find("\"sh\" in \"/no/such/place\"") != std::string::npos);
    }
    lost.directory.clear();
    lost.out = standard_stream(987'654);
    CHECK(error_of([&] { process::start(lost); }) == std::errc::bad_file_descriptor);
    CHECK_THROWS_AS(process::start(shell(std::string("a\0b", 3))), std::invalid_argument);
    process none;
    CHECK_THROWS_AS(none.wait(), std::logic_error);
    CHECK_THROWS_AS(none.in(), std::logic_error);
    CHECK(none.native_handle() == -1);
    CHECK(no_child_is_left());
    CHECK(testing::open_descriptors() == before);
  });
}

TEST_CASE("a program ends with its scope", "[process]") {
  run([] {
    const std::size_t before = testing::open_descriptors();
    int number = 0;
    bool both_run = false;
    auto owner = spin([&] {
      process one = process::start(idle());
      number = one.id();
      process moved = std::move(one);
      one = process::start(idle());
      CHECK(::kill(one.id(), 0) == 0);
      both_run = true;
      sleep();
    });
    while (!both_run) sleep_for(1ms);
    CHECK(owner.raise(oops()));
    CHECK_THROWS_AS(owner.await(), oops);
    CHECK(::kill(number, 0) < 0);
    CHECK(no_child_is_left());
    CHECK(testing::open_descriptors() == before);
  });
}

TEST_CASE("signals reach a program, and a whole group if it has its own", "[process]") {
  run([] {
    process one = process::start(idle());
    CHECK(one.signal(SIGUSR1));
    CHECK(one.wait().signal == SIGUSR1);

    process_options what = shell("sleep 1000 & echo $!; wait");
    what.out = standard_stream::pipe;
    what.new_group = true;
    process leader = process::start(what);
    const int child = std::stoi(first_line(leader.out()));
    CHECK(::kill(child, 0) == 0);
    CHECK(leader.terminate().signal == SIGTERM);
    // Nothing writes to the pipe any more: the child is gone, too.
    CHECK(first_line(leader.out()) == "(the end)");
  });
}

TEST_CASE("a group ends with its process, though its leader has ended before", "[process]") {
  run([] {
    process_options what = shell("sleep 1000 & echo $!; exit 3");
    what.out = standard_stream::pipe;
    what.new_group = true;
    const auto ends = [&](auto end) {
      process leader = process::start(what);
      motet::pipe lines = std::move(leader.out());
      const int left = std::stoi(first_line(lines));
      CHECK(leader.wait().code == 3);
      CHECK(leader.wait().code == 3);
      CHECK(::kill(left, 0) == 0);
      end(leader);
      // Nothing writes to the pipe any more: the rest of the group is gone.
      CHECK(first_line(lines) == "(the end)");
    };
    ends([](process& leader) { leader = process(); });
    ends([](process& leader) { CHECK(leader.terminate().code == 3); });
    ends([](process& leader) { const process moved = std::move(leader); });
    CHECK(no_child_is_left());
    CHECK_FALSE(move_on_after(20ms, [&] { run_command(what); }));  // waits for the pipe's end
    CHECK(no_child_is_left());
  });
}

TEST_CASE("a program that ignores SIGTERM is killed after its grace", "[process]") {
  run([] {
    process_options what = shell("trap '' TERM; echo ready; while :; do sleep 0.01; done");
    what.out = standard_stream::pipe;
    what.err = standard_stream::null;
    process stubborn = process::start(what);
    CHECK(first_line(stubborn.out()) == "ready");
    CHECK(stubborn.terminate(30ms).signal == SIGKILL);
    what.grace = 10ms;
    {
      process other = process::start(what);
      CHECK(first_line(other.out()) == "ready");
    }
    CHECK(no_child_is_left());
  });
}

TEST_CASE("a program gets no blocked signals and no handler of ours", "[process]") {
  run([] {
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, &before);
    signal_set waits_for{SIGUSR1};
    const command_result seen =
        run_command({.program = "sed", .args = {"-n", "/SigBlk/p;/SigCgt/p", "/proc/self/status"}});
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    CHECK(seen.out == "SigBlk:\t0000000000000000\nSigCgt:\t0000000000000000\n");
  });
}

TEST_CASE("a command's texts are gathered, within a limit and a time", "[process]") {
  run([] {
    const command_result both = run_command(shell("cat; echo failed >&2; exit 4"), "some\ninput\n");
    CHECK(both.status.code == 4);
    CHECK(both.out == "some\ninput\n");
    CHECK(both.err == "failed\n");
    const std::string much(300'000, 'm');
    CHECK(run_command({.program = "cat"}, much).out == much);
    CHECK(run_command(shell("exit 0"), much).status);
    CHECK_THROWS_AS(run_command({.program = "cat"}, much, 299'999), limit_exceeded);
    CHECK_THROWS_AS(run_command(shell("yes")), limit_exceeded);
    CHECK_THROWS_AS(with_timeout(20ms, [] { run_command(shell("exec sleep 1000")); }), timed_out);
    CHECK(no_child_is_left());
  });
}

TEST_CASE("a process that is reaped by another call is told of", "[process]") {
  run([] {
    process lost = process::start(idle());
    lost.signal(SIGTERM);
    CHECK(::waitpid(lost.id(), nullptr, 0) == lost.id());
    CHECK(error_of([&] { lost.wait(); }) == std::errc::no_child_process);
  });
}

TEST_CASE("a program that ends unseen before it has a pidfd is told of", "[process]") {
  run([] {
    const auto before = ::signal(SIGCHLD, SIG_IGN);
    motet::pipe begun = motet::pipe::open();
    REQUIRE(::fcntl(begun.native_handle(SHUT_RD), F_SETFL, 0) == 0);
    process_options what = shell("echo");
    what.out = standard_stream(begun.native_handle(SHUT_WR));
    auto delay = spin([&] {  // keeps the thread until the program is gone
      char byte = 0;
      while (::read(begun.native_handle(SHUT_RD), &byte, 1) < 0) CHECK(errno == EINTR);
      CHECK(::waitpid(-1, nullptr, 0) < 0);
    });
    std::error_code code;
    std::string text;
    try {
      process::start(what);
    } catch (const std::system_error& unseen) {
      code = unseen.code();
      text = unseen.what();
    }
    delay.await();
    ::signal(SIGCHLD, before);
    CHECK(code == std::errc::no_child_process);
    CHECK_THAT(text, Catch::Contains("\"sh\"") && Catch::Contains("SIGCHLD"));
  });
}

TEST_CASE("a forked child leaves its parent's program alone", "[process]") {
  run([] {
    process ours = process::start(idle());
    const pid_t child = ::fork();
    if (child == 0) {
      bool refused = false;
      try {
        ours.wait();
      } catch (const std::logic_error&) {
        refused = true;
      }
      ours = process();
      ::_exit(refused ? 0 : 1);
    }
    int how = 0;
    REQUIRE(::waitpid(child, &how, 0) == child);
    CHECK(how == 0);
    CHECK(ours.signal(0));
  });
}

#if defined(MOTET_FAULTS)
namespace {

std::string_view refused_call;

int refuse(const char* call) noexcept {
  return call == refused_call ? EMFILE : 0;
}

}  // namespace

TEST_CASE("without descriptors or memory no program is left half started", "[process]") {
  run([] {
    const std::size_t before = testing::open_descriptors();
    for (const char* call : {"pipe2", "fcntl", "posix_spawn", "pidfd_open"}) {
      INFO(call);
      refused_call = call;
      detail::faults::choose = refuse;
      CHECK(error_of([] { process::start(idle()); }) == std::errc::too_many_files_open);
      detail::faults::choose = nullptr;
      CHECK(no_child_is_left());
    }
    CHECK(testing::open_descriptors() == before);
  });
}

TEST_CASE("a number without a process gets no signal", "[process]") {
  run([] {
    motet::pipe to = motet::pipe::open();
    motet::pipe from = motet::pipe::open();
    for (const int each : {to.native_handle(SHUT_RD), from.native_handle(SHUT_WR)}) {
      REQUIRE(::fcntl(each, F_SETFL, 0) == 0);
    }
    process_options what = shell("read line; echo $line");
    what.in = standard_stream(to.native_handle(SHUT_RD));
    what.out = standard_stream(from.native_handle(SHUT_WR));
    detail::faults::choose = [](const char* call) noexcept {
      return std::string_view(call) == "pidfd_open" ? ESRCH : 0;
    };
    CHECK(error_of([&] { process::start(what); }) == std::errc::no_child_process);
    detail::faults::choose = nullptr;
    from.shutdown(SHUT_WR);
    to.write_all("it runs\n");
    CHECK(first_line(from) == "it runs");
    CHECK(::waitpid(-1, nullptr, 0) > 0);
  });
}
#endif

TEST_CASE("a supervisor starts a program again until it ends well", "[process][supervise]") {
  run([] {
    const scratch_name count;
    const std::string name(std::string_view{count});
    int starts = 0;
    supervise_options how;
    how.restarts = 10;
    how.delay = 0ms;
    supervise(how, child_spec{.name = "worker", .restart = restart_policy::on_failure, .make = [&] {
                                ++starts;
                                process worker = process::start(shell(
                                    "echo x >> " + name + "; [ $(wc -l < " + name + ") = 3 ]"));
                                if (!worker.wait()) throw oops();
                              }});
    CHECK(starts == 3);
    CHECK(no_child_is_left());
  });
}

TEST_CASE("a hundred programs at a time leave neither zombies nor descriptors", "[process]") {
  run([] {
    const std::size_t before = testing::open_descriptors();
    group all;
    int ended = 0;
    const auto count = testing::scaled(400, 60);
    for (std::size_t i = 0; i < count; ++i) {
      all.spin([&, i] {
        const command_result one = run_command(
            shell("read x; echo $x; exit " + std::to_string(i % 100)), std::to_string(i) + "\n");
        if (one.out == std::to_string(i) + "\n" && one.status.code == static_cast<int>(i % 100)) {
          ++ended;
        }
      });
    }
    all.await_all();
    CHECK(ended == static_cast<int>(count));
    CHECK(no_child_is_left());
    CHECK(testing::open_descriptors() == before);
  });
}

TEST_CASE("a process may be destroyed while fibers wait for its end", "[process]") {
  run([] {
    std::optional<process> one(process::start(idle()));
    auto waiting = spin([&] { return one->wait().signal; });
    until_waiting(waiting);
    one.reset();
    CHECK(waiting.await() == SIGTERM);
  });
}

TEST_CASE("a process is ended also where its fiber is terminated", "[process]") {
  run([] {
    process_options stubborn = shell("trap '' TERM; while :; do sleep 0.05; done");
    stubborn.grace = 100ms;
    bool leaves = false;
    auto owner = spin([&] {
      const process one = process::start(stubborn);
      sleep_for(5ms);
      leaves = true;
    });
    while (!leaves) sleep_for(1ms);
    until_waiting(owner);  // in the destructor
    owner.terminate(1ms);
    owner.await();  // its body had ended
    CHECK(no_child_is_left());
  });
}

TEST_CASE("a process may be moved or destroyed while a fiber terminates it", "[process]") {
  run([] {
    for (const bool moves : {false, true}) {
      std::optional<process> program = process::start(idle());
      auto ending = spin([&] { return program->terminate(10s); });
      until_waiting(ending);
      std::optional<process> kept;
      if (moves) kept = std::move(*program);
      program.reset();
      CHECK(ending.await().signal != 0);
      CHECK(no_child_is_left());
    }
  });
}
