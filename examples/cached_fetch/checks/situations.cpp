// SPDX-License-Identifier: MIT
// See situations.hpp.
#include "situations.hpp"

namespace cached_fetch {

using namespace std::chrono_literals;

namespace {

using kind = outcome::kind;

void delay_caches(dice& random, plan& how) {
  how.mem_get = random.ms_up_to(10);
  how.disk_get = random.ms_up_to(10);
  how.mem_set = random.ms_up_to(20);
  how.disk_set = random.ms_up_to(20);
}

}  // namespace

situation make_situation(dice& random, const town& servers, int number) {
  situation made{"key " + std::to_string(number), {.server = servers.good.where()}, {}};
  plan& how = made.how;
  how.overall = how.network = 30s;  // unless it is about them
  delay_caches(random, how);
  switch (random.up_to(8)) {
    case 0:  // all is well
      made.allowed = {kind::value};
      break;
    case 1:  // a cache fails
      (random.one_in(2) ? how.mem_is_broken : how.disk_is_full) = true;
      made.allowed = {kind::value};
      break;
    case 2:  // a disk that blocks a thread
      how.disk_blocks = true;
      made.allowed = {kind::value};
      break;
    case 3:  // nobody listens, nobody answers, nobody finishes
      how.server = random.one_in(2) ? servers.empty_place : servers.rude.where();
      made.allowed = {kind::error};
      break;
    case 4:  // a key that cannot be sent
      made.key.resize(256, 'x');
      made.allowed = {kind::error};
      break;
    case 5:  // the network's limit
      how.server = random.one_in(2) ? servers.silent.where() : servers.deaf.where();
      how.network = random.ms_up_to(60);
      made.allowed = {kind::timed_out_network};
      break;
    case 6:  // the limit of it all, at any moment
      how.overall = random.ms_up_to(60);
      made.allowed = {kind::value, kind::timed_out_overall};
      break;
    case 7:  // both
      how.server = servers.silent.where();
      how.overall = random.ms_up_to(60);
      how.network = random.ms_up_to(60);
      made.allowed = {kind::timed_out_network, kind::timed_out_overall};
      break;
    default:  // only a cancellation ends it
      how.server = random.one_in(2) ? servers.silent.where() : servers.deaf.where();
      made.is_cancelled = true;
      break;
  }
  made.is_cancelled = made.is_cancelled || random.one_in(3);
  if (made.is_cancelled) made.allowed.push_back(kind::cancelled);
  return made;
}

}  // namespace cached_fetch
