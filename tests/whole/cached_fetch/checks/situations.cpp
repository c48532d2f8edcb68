// SPDX-License-Identifier: MIT
#include "situations.hpp"

namespace fetch_test {

using namespace std::chrono_literals;

namespace {

using kind = outcome::kind;

void delay_caches(dice& random, plan& course) {
  course.mem_get = random.ms_up_to(10);
  course.disk_get = random.ms_up_to(10);
  course.mem_set = random.ms_up_to(20);
  course.disk_set = random.ms_up_to(20);
}

}  // namespace

situation make_situation(dice& random, const town& servers, int number) {
  situation result{"key " + std::to_string(number), {.server = servers.good_server.where()}, {}};
  plan& course = result.course;
  course.overall = course.network = 30s;  // unless a limit is the point
  delay_caches(random, course);
  switch (random.up_to(8)) {
    case 0:  // nothing is in the way
      result.outcomes = {kind::value};
      break;
    case 1:  // a cache fails
      (random.one_in(2) ? course.mem_is_broken : course.disk_is_full) = true;
      result.outcomes = {kind::value};
      break;
    case 2:  // a disk that blocks a thread
      course.disk_blocks = true;
      result.outcomes = {kind::value};
      break;
    case 3:  // nobody listens, nobody answers, nobody finishes
      course.server = random.one_in(2) ? servers.empty_place : servers.rude_server.where();
      result.outcomes = {kind::error};
      break;
    case 4:  // a key that cannot be sent
      result.key.resize(256, 'x');
      result.outcomes = {kind::error};
      break;
    case 5:  // the limit of the network
      course.server =
          random.one_in(2) ? servers.silent_server.where() : servers.deaf_server.where();
      course.network = random.ms_up_to(60);
      result.outcomes = {kind::timed_out_network};
      break;
    case 6:  // the limit of the whole, at any moment
      course.overall = random.ms_up_to(60);
      result.outcomes = {kind::value, kind::timed_out_overall};
      break;
    case 7:  // both limits
      course.server = servers.silent_server.where();
      course.overall = random.ms_up_to(60);
      course.network = random.ms_up_to(60);
      result.outcomes = {kind::timed_out_network, kind::timed_out_overall};
      break;
    default:  // only a cancellation ends it
      course.server =
          random.one_in(2) ? servers.silent_server.where() : servers.deaf_server.where();
      result.is_cancelled = true;
      break;
  }
  result.is_cancelled = result.is_cancelled || random.one_in(3);
  if (result.is_cancelled) result.outcomes.push_back(kind::cancelled);
  return result;
}

}  // namespace fetch_test
