// SPDX-License-Identifier: MIT
// An authority for tests, and certificates that it has signed, or has not.
#pragma once

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <memory>
#include <motet/tls.hpp>
#include <string>

#include "catch.hpp"
#include "io/scratch.hpp"

namespace testing {

template <auto Free>
struct freed_by {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
using key = std::unique_ptr<EVP_PKEY, freed_by<EVP_PKEY_free>>;
using x509 = std::unique_ptr<X509, freed_by<X509_free>>;

/// What a certificate says, and for how long: days from now.
struct claims {
  std::string names = {};  // as "DNS:example.test,IP:127.0.0.1"
  long begins = -1;
  long ends = 10;
  std::string password = {};  // of the key; none: it is not encrypted
};

class authority {
 public:
  /// `kind` of key: a curve, "RSA" (of 4096 bits) or "ED25519".
  explicit authority(const std::string& kind = "P-256") : key_(new_key(kind)) {}

  /// Returns: what a client trusts.
  std::string file() const { return directory_.name() + "/authority.pem"; }

  motet::tls::certificate issue(const std::string& name, const claims& contents) {
    return write(name, *make(name, contents, root_.get()), contents.password);
  }
  motet::tls::certificate self_signed(const std::string& name, const claims& contents) {
    return write(name, *make(name, contents, nullptr), contents.password);
  }
  /// Returns: the name of a file in the same directory, which is there until the test is over.
  std::string file_with(const std::string& name, const std::string& text) {
    const std::string path = directory_.name() + "/" + name;
    std::FILE* file = std::fopen(path.c_str(), "w");
    REQUIRE(file != nullptr);
    std::fputs(text.c_str(), file);
    std::fclose(file);
    return path;
  }

 private:
  static EVP_PKEY* new_key(const std::string& kind) {
    if (kind == "RSA") return EVP_RSA_gen(4096);
    if (kind == "ED25519") return EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519");
    return EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", kind.c_str());
  }

  x509 make(const std::string& name, const claims& contents, X509* issuer) {
    x509 certificate(X509_new());
    X509_set_version(certificate.get(), X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), ++serial_);
    X509_gmtime_adj(X509_getm_notBefore(certificate.get()), contents.begins * 24 * 3600);
    X509_gmtime_adj(X509_getm_notAfter(certificate.get()), contents.ends * 24 * 3600);
    X509_set_pubkey(certificate.get(), key_.get());
    X509_NAME* subject = X509_get_subject_name(certificate.get());
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
    X509_set_issuer_name(certificate.get(),
                         issuer == nullptr ? subject : X509_get_subject_name(issuer));
    extend(*certificate, NID_basic_constraints,
           name == "authority" ? "critical,CA:TRUE" : "CA:FALSE");
    if (!contents.names.empty()) extend(*certificate, NID_subject_alt_name, contents.names);
    // An Ed25519 key brings its own. Source: X509_sign(3).
    const EVP_MD* digest = EVP_PKEY_is_a(key_.get(), "ED25519") == 1 ? nullptr : EVP_sha256();
    REQUIRE(X509_sign(certificate.get(), key_.get(), digest) > 0);
    return certificate;
  }

  static void extend(X509& certificate, int kind, const std::string& value) {
    X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, kind, value.c_str());
    REQUIRE(extension != nullptr);
    X509_add_ext(&certificate, extension, -1);
    X509_EXTENSION_free(extension);
  }

  motet::tls::certificate write(const std::string& name, X509& certificate,
                                std::string password = {}) {
    motet::tls::certificate files{directory_.name() + "/" + name + ".pem",
                                  directory_.name() + "/" + name + ".key"};
    std::FILE* chain = std::fopen(files.chain_file.c_str(), "w");
    std::FILE* secret = std::fopen(files.key_file.c_str(), "w");
    REQUIRE(chain != nullptr);
    REQUIRE(secret != nullptr);
    CHECK(PEM_write_X509(chain, &certificate) == 1);
    const EVP_CIPHER* cipher = password.empty() ? nullptr : EVP_aes_256_cbc();
    CHECK(PEM_write_PrivateKey(secret, key_.get(), cipher, nullptr, 0, nullptr, password.data()) ==
          1);
    std::fclose(chain);
    std::fclose(secret);
    return files;
  }

  scratch_directory directory_;
  const key key_;
  long serial_ = 0;
  const x509 root_ = [this] {
    x509 certificate = make("authority", {}, nullptr);
    write("authority", *certificate);
    return certificate;
  }();
};

}  // namespace testing
