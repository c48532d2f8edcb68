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
  process_options options{.program = "sleep", .args = {"1000"}};
  options.in = options.out = options.err = standard_stream::pipe;
  return options;
}

/// Whether every child of this process has been reaped.
bool no_child_is_left() {
  return ::waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD;
}

std::string first_line(motet::pipe& output) {
  reader input(output);
  return std::string(input.line().value_or("(the end)"));
}

}  // namespace

TEST_CASE("process::wait() returns the exit code or the signal", "[process]") {
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

TEST_CASE("process::wait() blocks one fiber, and several may wait", "[process]") {
  run([] {
    process_options options = shell("read line; exit 5");
    options.in = standard_stream::pipe;
    process program = process::start(options);
    auto first = spin([&] { return program.wait().code; });
    auto second = spin([&] { return program.wait().code; });
    auto quitter = spin([&] { program.wait(); });
    until_waiting(quitter);
    CHECK(quitter.raise(oops()));
    CHECK_THROWS_AS(quitter.await(), oops);
    sleep_for(1ms);
    CHECK(first.state() == fiber_state::waiting);
    program.in().write_all("\n");
    CHECK(first.await() == 5);
    CHECK(second.await() == 5);
  });
}

TEST_CASE("process_options::in, out and err are pipes, files or null", "[process]") {
  run([] {
    const std::size_t descriptors = testing::open_descriptors();
    {
      process_options options{.program = "cat"};
      options.in = options.out = standard_stream::pipe;
      process cat = process::start(options);
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
      reader lines(last.out());
      CHECK(lines.line() == "out");
      CHECK(lines.line() == "nothing");
      CHECK(last.wait());
      CHECK(target.size() == 4);
    }
    CHECK(testing::open_descriptors() == descriptors);
  });
}

TEST_CASE("process::start() passes only the standard streams, the directory and the environment",
          "[process]") {
  run([] {
    const fd leaks(::open("/dev/null", O_RDONLY));
    // The directory itself is open while ls reads it.
    CHECK(run_command({.program = "ls", .args = {"/proc/self/fd"}}).out == "0\n1\n2\n3\n");
    process_options options = shell("pwd; echo $HOME$MORE");
    options.directory = "/usr/bin";
    options.environment = {"MORE=yes"};
    options.program = "/bin/sh";
    CHECK(run_command(options).out == "/usr/bin\nyes\n");
    options.program = "./env";
    options.args = {};
    CHECK(run_command(options).out == "MORE=yes\n");
  });
}

TEST_CASE("process::start() throws in the parent if the program cannot be started", "[process]") {
  run([] {
    const std::size_t descriptors = testing::open_descriptors();
    CHECK(error_of([] { process::start({.program = "no-such-program"}); }) ==
          std::errc::no_such_file_or_directory);
    CHECK(error_of([] { process::start({.program = "/etc/passwd"}); }) ==
          std::errc::permission_denied);
    CHECK(error_of([] { process::start({.program = "/"}); }) == std::errc::permission_denied);
    process_options options = shell("exit 0");
    options.directory = "/no/such/place";
    CHECK(error_of([&] { process::start(options); }) == std::errc::no_such_file_or_directory);
    try {
      process::start(options);
    } catch (const std::system_error& refused) {
      CHECK(std::string(refused.what()).find("\"sh\" in \"/no/such/place\"") != std::string::npos);
    }
    options.directory.clear();
    options.out = standard_stream(987'654);
    CHECK(error_of([&] { process::start(options); }) == std::errc::bad_file_descriptor);
    CHECK_THROWS_AS(process::start(shell(std::string("a\0b", 3))), std::invalid_argument);
    process program;
    CHECK_THROWS_AS(program.wait(), std::logic_error);
    CHECK_THROWS_AS(program.in(), std::logic_error);
    CHECK(program.native_handle() == -1);
    CHECK(no_child_is_left());
    CHECK(testing::open_descriptors() == descriptors);
  });
}

TEST_CASE("process ends its program with its scope", "[process]") {
  run([] {
    const std::size_t descriptors = testing::open_descriptors();
    int number = 0;
    bool both_run = false;
    auto owner = spin([&] {
      process program = process::start(idle());
      number = program.id();
      process keeper = std::move(program);
      program = process::start(idle());
      CHECK(::kill(program.id(), 0) == 0);
      both_run = true;
      sleep();
    });
    while (!both_run) sleep_for(1ms);
    CHECK(owner.raise(oops()));
    CHECK_THROWS_AS(owner.await(), oops);
    CHECK(::kill(number, 0) < 0);
    CHECK(no_child_is_left());
    CHECK(testing::open_descriptors() == descriptors);
  });
}

TEST_CASE("process::signal() reaches the program, terminate() its whole group if it has one",
          "[process]") {
  run([] {
    process program = process::start(idle());
    CHECK(program.signal(SIGUSR1));
    CHECK(program.wait().signal == SIGUSR1);

    process_options options = shell("sleep 1000 & echo $!; wait");
    options.out = standard_stream::pipe;
    options.new_group = true;
    process leader = process::start(options);
    const int child = std::stoi(first_line(leader.out()));
    CHECK(::kill(child, 0) == 0);
    CHECK(leader.terminate().signal == SIGTERM);
    // Nothing writes to the pipe any more: the child is gone, too.
    CHECK(first_line(leader.out()) == "(the end)");
  });
}

TEST_CASE("process_options::new_group ends the group though its leader has ended before",
          "[process]") {
  run([] {
    process_options options = shell("sleep 1000 & echo $!; exit 3");
    options.out = standard_stream::pipe;
    options.new_group = true;
    const auto ends = [&](auto end) {
      process leader = process::start(options);
      motet::pipe lines = std::move(leader.out());
      const int pid = std::stoi(first_line(lines));
      CHECK(leader.wait().code == 3);
      CHECK(leader.wait().code == 3);
      CHECK(::kill(pid, 0) == 0);
      end(leader);
      // Nothing writes to the pipe any more: the rest of the group is gone.
      CHECK(first_line(lines) == "(the end)");
    };
    ends([](process& leader) { leader = process(); });
    ends([](process& leader) { CHECK(leader.terminate().code == 3); });
    ends([](process& leader) { const process keeper = std::move(leader); });
    CHECK(no_child_is_left());
    CHECK_FALSE(move_on_after(20ms, [&] { run_command(options); }));  // waits for the pipe's end
    CHECK(no_child_is_left());
  });
}

TEST_CASE("process::terminate() kills a program that ignores SIGTERM after its grace",
          "[process]") {
  run([] {
    process_options options = shell("trap '' TERM; echo ready; while :; do sleep 0.01; done");
    options.out = standard_stream::pipe;
    options.err = standard_stream::null;
    process stubborn = process::start(options);
    CHECK(first_line(stubborn.out()) == "ready");
    CHECK(stubborn.terminate(30ms).signal == SIGKILL);
    options.grace = 10ms;
    {
      process second = process::start(options);
      CHECK(first_line(second.out()) == "ready");
    }
    CHECK(no_child_is_left());
  });
}

TEST_CASE("process::start() passes on no blocked signals and no handlers", "[process]") {
  run([] {
    sigset_t mask;
    sigset_t old_mask;
    ::sigfillset(&mask);
    ::pthread_sigmask(SIG_BLOCK, &mask, &old_mask);
    signal_set waits_for{SIGUSR1};
    const command_result result =
        run_command({.program = "sed", .args = {"-n", "/SigBlk/p;/SigCgt/p", "/proc/self/status"}});
    ::pthread_sigmask(SIG_SETMASK, &old_mask, nullptr);
    CHECK(result.out == "SigBlk:\t0000000000000000\nSigCgt:\t0000000000000000\n");
  });
}

TEST_CASE("run_command() gathers the output, within a limit and a time", "[process]") {
  run([] {
    const command_result result =
        run_command(shell("cat; echo failed >&2; exit 4"), "some\ninput\n");
    CHECK(result.status.code == 4);
    CHECK(result.out == "some\ninput\n");
    CHECK(result.err == "failed\n");
    const std::string much(300'000, 'm');
    CHECK(run_command({.program = "cat"}, much).out == much);
    CHECK(run_command(shell("exit 0"), much).status);
    CHECK_THROWS_AS(run_command({.program = "cat"}, much, 299'999), limit_exceeded);
    CHECK_THROWS_AS(run_command(shell("yes")), limit_exceeded);
    CHECK_THROWS_AS(with_timeout(20ms, [] { run_command(shell("exec sleep 1000")); }), timed_out);
    CHECK(no_child_is_left());
  });
}

TEST_CASE("process::wait() throws if another call has reaped the process", "[process]") {
  run([] {
    process program = process::start(idle());
    program.signal(SIGTERM);
    CHECK(::waitpid(program.id(), nullptr, 0) == program.id());
    CHECK(error_of([&] { program.wait(); }) == std::errc::no_child_process);
  });
}

TEST_CASE("process::start() throws if the program ends unseen before it has a pidfd", "[process]") {
  run([] {
    const auto handler = ::signal(SIGCHLD, SIG_IGN);
    motet::pipe echo_pipe = motet::pipe::open();
    REQUIRE(::fcntl(echo_pipe.native_handle(SHUT_RD), F_SETFL, 0) == 0);
    process_options options = shell("echo");
    options.out = standard_stream(echo_pipe.native_handle(SHUT_WR));
    auto delay = spin([&] {  // keeps the thread until the program is gone
      char byte = 0;
      while (::read(echo_pipe.native_handle(SHUT_RD), &byte, 1) < 0) CHECK(errno == EINTR);
      CHECK(::waitpid(-1, nullptr, 0) < 0);
    });
    std::error_code code;
    std::string text;
    try {
      process::start(options);
    } catch (const std::system_error& unseen) {
      code = unseen.code();
      text = unseen.what();
    }
    delay.await();
    ::signal(SIGCHLD, handler);
    CHECK(code == std::errc::no_child_process);
    CHECK_THAT(text, Catch::Contains("\"sh\"") && Catch::Contains("SIGCHLD"));
  });
}

TEST_CASE("process leaves its program alone in a forked child", "[process]") {
  run([] {
    process program = process::start(idle());
    const pid_t child = ::fork();
    if (child == 0) {
      bool refused = false;
      try {
        program.wait();
      } catch (const std::logic_error&) {
        refused = true;
      }
      program = process();
      ::_exit(refused ? 0 : 1);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    CHECK(program.signal(0));
  });
}

#if defined(MOTET_FAULTS)
namespace {

std::string_view refused_call;

int refuse(const char* call) noexcept {
  return call == refused_call ? EMFILE : 0;
}

}  // namespace

TEST_CASE("process::start() leaves no program half started without descriptors or memory",
          "[process]") {
  run([] {
    const std::size_t descriptors = testing::open_descriptors();
    for (const char* call : {"pipe2", "fcntl", "posix_spawn", "pidfd_open"}) {
      INFO(call);
      refused_call = call;
      detail::faults::choose = refuse;
      CHECK(error_of([] { process::start(idle()); }) == std::errc::too_many_files_open);
      detail::faults::choose = nullptr;
      CHECK(no_child_is_left());
    }
    CHECK(testing::open_descriptors() == descriptors);
  });
}

TEST_CASE("process::start() sends no signal to a number without a process", "[process]") {
  run([] {
    motet::pipe input_pipe = motet::pipe::open();
    motet::pipe output_pipe = motet::pipe::open();
    for (const int fd : {input_pipe.native_handle(SHUT_RD), output_pipe.native_handle(SHUT_WR)}) {
      REQUIRE(::fcntl(fd, F_SETFL, 0) == 0);
    }
    process_options options = shell("read line; echo $line");
    options.in = standard_stream(input_pipe.native_handle(SHUT_RD));
    options.out = standard_stream(output_pipe.native_handle(SHUT_WR));
    detail::faults::choose = [](const char* call) noexcept {
      return std::string_view(call) == "pidfd_open" ? ESRCH : 0;
    };
    CHECK(error_of([&] { process::start(options); }) == std::errc::no_child_process);
    detail::faults::choose = nullptr;
    output_pipe.shutdown(SHUT_WR);
    input_pipe.write_all("it runs\n");
    CHECK(first_line(output_pipe) == "it runs");
    CHECK(::waitpid(-1, nullptr, 0) > 0);
  });
}
#endif

TEST_CASE("supervise() restarts a process until it ends well", "[process][supervise]") {
  run([] {
    const scratch_name count;
    const std::string name(std::string_view{count});
    int starts = 0;
    supervise_options options;
    options.restarts = 10;
    options.delay = 0ms;
    supervise(options,
              child_spec{.name = "worker", .restart = restart_policy::on_failure, .make = [&] {
                           ++starts;
                           process worker = process::start(
                               shell("echo x >> " + name + "; [ $(wc -l < " + name + ") = 3 ]"));
                           if (!worker.wait()) throw oops();
                         }});
    CHECK(starts == 3);
    CHECK(no_child_is_left());
  });
}

TEST_CASE("run_command() leaves no zombies or descriptors after a hundred programs at a time",
          "[process]") {
  run([] {
    const std::size_t descriptors = testing::open_descriptors();
    group runners;
    int successes = 0;
    const auto count = testing::scaled(400, 60);
    for (std::size_t i = 0; i < count; ++i) {
      runners.spin([&, i] {
        const command_result result = run_command(
            shell("read x; echo $x; exit " + std::to_string(i % 100)), std::to_string(i) + "\n");
        if (result.out == std::to_string(i) + "\n" &&
            result.status.code == static_cast<int>(i % 100)) {
          ++successes;
        }
      });
    }
    runners.await_all();
    CHECK(successes == static_cast<int>(count));
    CHECK(no_child_is_left());
    CHECK(testing::open_descriptors() == descriptors);
  });
}

TEST_CASE("process may be destroyed while fibers wait for its end", "[process]") {
  run([] {
    std::optional<process> program(process::start(idle()));
    auto waiter = spin([&] { return program->wait().signal; });
    until_waiting(waiter);
    program.reset();
    CHECK(waiter.await() == SIGTERM);
  });
}

TEST_CASE("process ends its program also where its fiber is terminated", "[process]") {
  run([] {
    process_options stubborn = shell("trap '' TERM; while :; do sleep 0.05; done");
    stubborn.grace = 100ms;
    bool leaves = false;
    auto owner = spin([&] {
      const process program = process::start(stubborn);
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

TEST_CASE("process may be moved or destroyed while a fiber terminates it", "[process]") {
  run([] {
    for (const bool moves : {false, true}) {
      std::optional<process> program = process::start(idle());
      auto finisher = spin([&] { return program->terminate(10s); });
      until_waiting(finisher);
      std::optional<process> target;
      if (moves) target = std::move(*program);
      program.reset();
      CHECK(finisher.await().signal != 0);
      CHECK(no_child_is_left());
    }
  });
}
