// SPDX-License-Identifier: MIT
// The same with Asio's pool; what waits for a job blocks its thread.
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_future.hpp>
#include <future>
#include <vector>

#include "../measure.hpp"

namespace {

namespace asio = boost::asio;
using bench::cost;

constexpr std::size_t workers = 2;

double jobs(std::size_t, std::size_t count) {
  asio::thread_pool pool(workers);
  std::vector<std::size_t> results(count);
  return cost(count, [&] {
    for (std::size_t i = 0; i < count; ++i) {
      asio::post(pool, [&results, i] { results[i] = i * 2; });
    }
    pool.join();
  });
}

template <typename F>
auto submit(asio::thread_pool& pool, F f) {
  return asio::post(pool, asio::use_future(std::move(f)));
}

double jobs_with_futures(std::size_t, std::size_t count) {
  asio::thread_pool pool(workers);
  std::vector<std::future<std::size_t>> results;
  results.reserve(count);
  return cost(count, [&] {
    for (std::size_t i = 0; i < count; ++i) results.push_back(submit(pool, [i] { return i * 2; }));
    for (auto& each : results) each.get();
  });
}

double one_at_a_time(std::size_t, std::size_t count) {
  asio::thread_pool pool(workers);
  return cost(count, [&] {
    for (std::size_t i = 0; i < count; ++i) submit(pool, [i] { return i * 2; }).get();
  });
}

constexpr bench::subject subjects[] = {
    {"jobs", &jobs},
    {"jobs_futures", &jobs_with_futures},
    {"one_job", &one_at_a_time},
    {"offload", &one_at_a_time},
};

}  // namespace

int main(int count, char** words) {
  return bench::main_of(subjects, count, words);
}
