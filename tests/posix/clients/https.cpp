// SPDX-License-Identifier: MIT
// libcurl, over TLS.
#include <curl/curl.h>

#include <stdexcept>

#include "posix/clients/client.hpp"

namespace clients { namespace {

/// libcurl's own memory, from before the first thread until the end of the process.
struct global_state {
  global_state() { ::curl_global_init(CURL_GLOBAL_ALL); }
  global_state(const global_state&) = delete;
  global_state& operator=(const global_state&) = delete;
  ~global_state() { ::curl_global_cleanup(); }
};
const global_state initialized;

/// Its connection is made by a first request, to which the server answers at once.
class https_client final : public client {
 public:
  explicit https_client(const std::string& server) : server_(server), request_(::curl_easy_init()) {
    ::curl_easy_setopt(request_, CURLOPT_SSL_VERIFYPEER, 0L);
    ::curl_easy_setopt(request_, CURLOPT_SSL_VERIFYHOST, 0L);
    ::curl_easy_setopt(request_, CURLOPT_NOSIGNAL, 1L);
    ::curl_easy_setopt(request_, CURLOPT_WRITEFUNCTION, &ignore);
  }
  ~https_client() override { ::curl_easy_cleanup(request_); }
  void connect() override {
    prepare("/quick");
    if (!succeeded(::curl_easy_perform(request_))) throw std::runtime_error("curl_easy_perform");
  }
  bool call() override {
    prepare("/slow");
    return succeeded(::curl_easy_perform(request_));
  }

  void prepare(const char* path) {
    ::curl_easy_setopt(request_, CURLOPT_URL, (server_ + path).c_str());
  }
  bool succeeded(CURLcode code) const {
    long status = 0;
    ::curl_easy_getinfo(request_, CURLINFO_RESPONSE_CODE, &status);
    return code == CURLE_OK && status == 200;
  }
  CURL* request() const { return request_; }

 private:
  static std::size_t ignore(char*, std::size_t size, std::size_t count, void*) {
    return size * count;
  }

  const std::string server_;
  CURL* const request_;
};

/// All requests of one thread, and the connections that they leave behind.
class multi_handle {
 public:
  multi_handle() = default;
  multi_handle(const multi_handle&) = delete;
  multi_handle& operator=(const multi_handle&) = delete;
  ~multi_handle() { ::curl_multi_cleanup(multi_); }

  /// Returns: how many succeeded.
  std::size_t get_all(connections& all, const char* path) {
    ::curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, static_cast<long>(all.size()));
    for (const auto& each : all) {
      auto& one = static_cast<https_client&>(*each);
      one.prepare(path);
      ::curl_easy_setopt(one.request(), CURLOPT_PRIVATE, &one);
      ::curl_multi_add_handle(multi_, one.request());
    }
    std::size_t successes = 0;
    for (int running = 1; running > 0;) {
      ::curl_multi_perform(multi_, &running);
      successes += ended();
      if (running > 0) ::curl_multi_poll(multi_, nullptr, 0, 1'000, nullptr);
    }
    return successes;
  }

 private:
  std::size_t ended() {
    std::size_t successes = 0;
    int left = 0;
    while (const CURLMsg* const news = ::curl_multi_info_read(multi_, &left)) {
      const CURLcode code = news->data.result;
      https_client* one = nullptr;
      ::curl_easy_getinfo(news->easy_handle, CURLINFO_PRIVATE, &one);
      ::curl_multi_remove_handle(multi_, one->request());
      successes += one->succeeded(code) ? 1 : 0;
    }
    return successes;
  }

  CURLM* const multi_ = ::curl_multi_init();
};

multi_handle& multi() {
  static multi_handle one;
  return one;
}

const registered https("https", {[](const std::string& server) -> std::unique_ptr<client> {
                                   return std::make_unique<https_client>(server);
                                 },
                                 [](connections& all) { return multi().get_all(all, "/slow"); },
                                 [](connections& all) {
                                   if (multi().get_all(all, "/quick") < all.size())
                                     throw std::runtime_error("curl_multi");
                                 }});

}}  // namespace clients
