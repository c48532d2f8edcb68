// SPDX-License-Identifier: MIT
#include "observed_cache.hpp"

#include <exception>
#include <stdexcept>

#include "nap.hpp"

namespace fetch_test {

namespace {

nap nap_of_disk(const plan& course) {
  return course.disk_blocks ? nap::of_the_thread : nap::of_the_fiber;
}

}  // namespace

std::optional<std::string> hindered_memory::get(const std::string& key) const {
  const stretch run;
  if (const errand* job = *current_errand) {
    job->log.add("mem_get", key);
    take(nap::of_the_fiber, job->course.mem_get);
    if (job->course.mem_is_broken) throw std::runtime_error("the memory is broken");
  }
  return store_.get(key);
}

void hindered_memory::set(const std::string& key, const std::string& value) {
  const stretch run;
  if (const errand* job = *current_errand) {
    job->log.add("mem_set", key);
    take(nap::of_the_fiber, job->course.mem_set);
  }
  store_.set(key, value);
}

std::optional<std::string> hindered_disk::get(const std::string& key) const {
  const stretch run;
  if (const errand* job = *current_errand) {
    job->log.add("disk_get", key);
    take(nap_of_disk(job->course), job->course.disk_get);
  }
  return store_.get(key);
}

void hindered_disk::set(const std::string& key, const std::string& value) const {
  const stretch run;
  if (const errand* job = *current_errand) {
    job->log.add("disk_set", key);
    take(nap_of_disk(job->course), job->course.disk_set);
    if (job->course.disk_is_full) throw std::runtime_error("the disk is full");
  }
  store_.set(key, value);
}

std::optional<std::string> observed_cache::get(const std::string& key) {
  const errand& job = **current_errand;
  logged_life life(job.log, key, job.fiber);
  try {
    const pause visit;
    auto hit = place_.get(key);
    if (hit) ++counts_.cache_hits;
    life.ends_as(hit ? "hit" : "miss");
    return hit;
  } catch (const std::exception&) {
    life.ends_as("failed");
    ++counts_.get_failures;
    throw;
  }
}

void observed_cache::set(const std::string& key, const std::string& value) {
  const errand& job = **current_errand;
  logged_life life(job.log, key, job.fiber);
  try {
    const pause visit;
    place_.set(key, value);
    life.ends_as("kept");
  } catch (const std::exception&) {
    life.ends_as("failed");
    ++counts_.set_failures;
    throw;
  }
}

}  // namespace fetch_test
