// SPDX-License-Identifier: MIT
// The same functions, written for threads, run by threads and by fibers: libcurl's blocking
// download, and sleep(3). Linked with motet-posix.
//
// usage: colour_free URL [CERTIFICATES]
//   URL           of a server that takes a second to answer, to see a difference
//   CERTIFICATES  a file with those to trust, instead of the system's
#include <curl/curl.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <iostream>
#include <motet/motet.hpp>
#include <string>
#include <thread>
#include <vector>

namespace {

std::size_t append(char* data, std::size_t size, std::size_t count, void* page) {
  static_cast<std::string*>(page)->append(data, size * count);
  return size * count;
}

std::string download(const char* url, const char* certificates) {
  std::string page;
  CURL* const request = curl_easy_init();
  curl_easy_setopt(request, CURLOPT_URL, url);
  if (certificates != nullptr) curl_easy_setopt(request, CURLOPT_CAINFO, certificates);
  curl_easy_setopt(request, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(request, CURLOPT_WRITEFUNCTION, &append);
  curl_easy_setopt(request, CURLOPT_WRITEDATA, &page);
  const CURLcode code = curl_easy_perform(request);
  curl_easy_cleanup(request);
  return code == CURLE_OK ? page : std::string(curl_easy_strerror(code));
}

template <typename F>
void in_threads(int count, F f) {
  std::vector<std::jthread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back(f);
}

template <typename F>
void in_fibers(int count, F f) {
  motet::group fibers;
  for (int i = 0; i < count; ++i) fibers.spin(f);
  fibers.await_all();
}

template <typename F>
void measure(const char* what, F f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  std::cout << what << ": " << elapsed.count() << " s\n";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) {
    std::cerr << "usage: colour_free URL [CERTIFICATES]\n";
    return 2;
  }
  const auto fetch = [url = argv[1], certificates = argc == 3 ? argv[2] : nullptr] {
    std::cout << "  " + std::to_string(download(url, certificates).size()) + " bytes\n";
  };
  const auto nap = [] { sleep(1); };
  curl_global_init(CURL_GLOBAL_ALL);
  measure("one download", fetch);
  measure("two, in threads", [&] { in_threads(2, fetch); });
  motet::run([&] {
    measure("two, in fibers", [&] { in_fibers(2, fetch); });
    measure("a thousand naps, in fibers", [&] { in_fibers(1000, nap); });
    measure("a download that may take 0.3 s", [&] {
      if (!motet::move_on_after(std::chrono::milliseconds(300), fetch)) std::cout << "  too late\n";
    });
  });
  curl_global_cleanup();
}
