// SPDX-License-Identifier: MIT
#include "observed_fetcher.hpp"

#include <utility>

#include "../../../examples/cached_fetch/protocol.hpp"
#include "errand.hpp"
#include "this_thread.hpp"

namespace fetch_test {

std::string observed_network::get(const std::string& key) {
  const errand& job = **current_errand;
  std::string value = get(key, job.course.server, job.log);
  ++counts_.fetched;
  return value;
}

/// As the example's client does it, with an event after each step.
std::string observed_network::get(const std::string& key, const motet::net::endpoint& server,
                                  event_log& log) {
  const stretch run;
  cached_fetch::check_key(key);
  log.add("connect", key);
  auto stream = [&] {
    const pause wait;
    return motet::net::tcp_stream::connect(server);
  }();
  {
    const pause wait;
    cached_fetch::send_text(stream, key);
  }
  log.add("sent", key);
  std::string value = [&] {
    const pause wait;
    return cached_fetch::receive_text(stream);
  }();
  log.add("received", key);
  return value;
}

observed_fetcher::observed_fetcher(motet::thread_pool& cpu, motet::thread_pool& net,
                                   observed_interface& ui, const std::filesystem::path& directory,
                                   event_log& log)
    : cpu_(cpu),
      log_(log),
      memory_(cpu),
      disk_(cpu, directory),
      fetcher_(observed_memory_, observed_disk_, network_, net, ui) {}

question_ref observed_fetcher::handle_key(std::string key, const plan& course) {
  auto wish = std::make_shared<question>(std::move(key), course, log_);
  cpu_.post([this, wish] { handle(*wish); });
  return wish;
}

void observed_fetcher::handle(question& wish) {
  const errand job{wish.course_, log_, motet::current().id()};
  *current_errand = &job;
  wish.fiber_ = job.fiber;
  outcome result;
  {
    logged_life life(log_, wish.key_);
    const pause request;
    result = fetcher_.handle(
        {wish.key_, wish.stop_.get_token(), wish.course_.overall, wish.course_.network});
    life.ends_as(describe(result));
  }
  wish.promise_.set_value(std::move(result));
}

}  // namespace fetch_test
