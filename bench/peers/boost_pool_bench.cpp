// SPDX-License-Identifier: MIT
// The same with Boost.Fiber, which has no pool: fibers of two threads take jobs from a channel.
#include <array>
#include <boost/fiber/all.hpp>
#include <functional>
#include <thread>
#include <vector>

#include "../measure.hpp"

namespace {

namespace fibers = boost::fibers;
using bench::cost;

class pool {
 public:
  using job = std::function<void()>;

  pool() {
    for (std::thread& each : threads_) {
      each = std::thread([this] {
        for (job next; jobs_.pop(next) == fibers::channel_op_status::success;) next();
      });
    }
  }
  ~pool() { end(); }
  void post(job next) { jobs_.push(std::move(next)); }
  void end() {
    jobs_.close();
    for (std::thread& each : threads_) {
      if (each.joinable()) each.join();
    }
  }

 private:
  fibers::buffered_channel<job> jobs_{1024};
  std::array<std::thread, 2> threads_;
};

double jobs(std::size_t, std::size_t count) {
  pool workers;
  std::vector<std::size_t> results(count);
  return cost(count, [&] {
    for (std::size_t i = 0; i < count; ++i) {
      workers.post([&results, i] { results[i] = i * 2; });
    }
    workers.end();
  });
}

fibers::future<std::size_t> submit(pool& workers, std::size_t i) {
  auto task = std::make_shared<fibers::packaged_task<std::size_t()>>([i] { return i * 2; });
  auto result = task->get_future();
  workers.post([task] { (*task)(); });
  return result;
}

double jobs_with_futures(std::size_t, std::size_t count) {
  pool workers;
  std::vector<fibers::future<std::size_t>> results;
  results.reserve(count);
  return cost(count, [&] {
    for (std::size_t i = 0; i < count; ++i) results.push_back(submit(workers, i));
    for (auto& each : results) each.get();
  });
}

double one_at_a_time(std::size_t, std::size_t count) {
  pool workers;
  return cost(count, [&] {
    for (std::size_t i = 0; i < count; ++i) submit(workers, i).get();
  });
}

constexpr bench::subject subjects[] = {
    {"jobs", &jobs},
    {"jobs_futures", &jobs_with_futures},
    {"one_job", &one_at_a_time},
};

}  // namespace

int main(int count, char** words) {
  return bench::main_of(subjects, count, words);
}
