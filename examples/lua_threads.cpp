// SPDX-License-Identifier: MIT
// One Lua state and four threads, each with a Lua thread of its own. Lua knows no threads: whoever
// is in it holds a timeslice_lock, and a hook looks every 1,000 instructions whether its turn is
// over. Each counts for a while; the counts come out about equal, and none is lost.
//
// usage: lua_threads [MILLISECONDS]
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <lua.hpp>
#include <memory>
#include <motet/motet.hpp>
#include <mutex>
#include <stdexcept>
#include <vector>

using namespace std::chrono_literals;

namespace {

using clock_type = std::chrono::steady_clock;

constexpr int threads = 4;
constexpr int instructions_between_looks = 1'000;

motet::timeslice_lock lua_lock(2ms);

const char* const script = R"(
  total = 0
  function work()
    local mine = 0
    while not over() do
      mine = mine + 1
      count()
    end
    return mine
  end
)";

clock_type::time_point ends_at;

int over(lua_State* state) {
  lua_pushboolean(state, clock_type::now() >= ends_at);
  return 1;
}

/// `total = total + 1` is several instructions, and a turn may end between them; a function in C is
/// one.
int count(lua_State* state) {
  lua_getglobal(state, "total");
  lua_pushinteger(state, lua_tointeger(state, -1) + 1);
  lua_setglobal(state, "total");
  return 0;
}

/// A Lua thread is left between two instructions only: nothing of Lua's is half done then. No
/// exception may leave a hook, which C calls.
void look(lua_State*, lua_Debug*) {
  motet::shield([] { lua_lock.yield_if_due(); });
}

void check(lua_State* state, int status) {
  if (status != LUA_OK) throw std::runtime_error(lua_tostring(state, -1));
}

/// Returns: how often it has counted.
lua_Integer count_in(lua_State* state) {
  const std::lock_guard lock(lua_lock);
  lua_sethook(state, &look, LUA_MASKCOUNT, instructions_between_looks);
  lua_getglobal(state, "work");
  check(state, lua_pcall(state, 0, 1, 0));
  return lua_tointeger(state, -1);
}

}  // namespace

int main(int words_given, char** words) {
  const std::chrono::milliseconds length(words_given > 1 ? std::atoi(words[1]) : 400);
  const std::unique_ptr<lua_State, decltype(&lua_close)> lua(luaL_newstate(), &lua_close);
  if (lua == nullptr) return EXIT_FAILURE;
  luaL_openlibs(lua.get());
  lua_register(lua.get(), "over", &over);
  lua_register(lua.get(), "count", &count);
  check(lua.get(), luaL_dostring(lua.get(), script));

  std::array<lua_Integer, threads> counts{};
  {
    std::vector<motet::thread> workers;
    lua_lock.lock();  // nobody begins before all are there
    for (lua_Integer& worker_count : counts) {
      // Stays on the main thread's stack, where the collector finds it.
      lua_State* worker_state = lua_newthread(lua.get());
      workers.emplace_back(
          [worker_state, &worker_count] { worker_count = count_in(worker_state); });
    }
    ends_at = clock_type::now() + length;
    lua_lock.unlock();
    for (const motet::thread& worker : workers) worker.await();
  }

  lua_getglobal(lua.get(), "total");
  const lua_Integer total = lua_tointeger(lua.get(), -1);
  lua_Integer sum = 0;
  for (const lua_Integer worker_count : counts) {
    sum += worker_count;
    std::printf("%10lld rounds, %4.1f %%\n", static_cast<long long>(worker_count),
                100.0 * static_cast<double>(worker_count) / static_cast<double>(total));
  }
  const auto statistics = lua_lock.stats();
  std::printf(
      "%10lld in all; %llu turns were over, the longest wait took %lld us\n",
      static_cast<long long>(total), static_cast<unsigned long long>(statistics.forced),
      static_cast<long long>(
          std::chrono::duration_cast<std::chrono::microseconds>(statistics.longest_wait).count()));
  const bool all_had_turns = *std::min_element(counts.begin(), counts.end()) > 0;
  return sum == total && all_had_turns ? EXIT_SUCCESS : EXIT_FAILURE;
}
