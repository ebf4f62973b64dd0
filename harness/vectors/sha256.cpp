#include "harness/vectors/sha256.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <vector>

namespace zeroproof::harness {

namespace {

EVP_MD_CTX* context_of(const auto& pointer) {
    return static_cast<EVP_MD_CTX*>(pointer.get());
}

void require(bool succeeded) {
    if (!succeeded) throw std::runtime_error("the library of checksums refuses SHA-256");
}

}  // namespace

void Sha256::Free::operator()(void* context) const {
    EVP_MD_CTX_free(static_cast<EVP_MD_CTX*>(context));
}

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
    require(context_ != nullptr);
    require(EVP_DigestInit_ex(context_of(context_), EVP_sha256(), nullptr) == 1);
}

void Sha256::add(std::span<const std::byte> bytes) {
    require(EVP_DigestUpdate(context_of(context_), bytes.data(), bytes.size()) == 1);
}

std::string Sha256::hex() {
    std::array<unsigned char, 32> digest;
    require(EVP_DigestFinal_ex(context_of(context_), digest.data(), nullptr) == 1);
    std::string text;
    for (const unsigned char byte : digest) text += fmt::format("{:02x}", byte);
    return text;
}

std::string sha256_of(std::string_view text) {
    Sha256 hash;
    hash.add(std::as_bytes(std::span(text)));
    return hash.hex();
}

std::string sha256_of(const UntrustedFile& file) {
    constexpr std::uint64_t kBlock = 1 << 20;
    std::vector<std::byte> block(std::min(file.size(), kBlock));
    Sha256 hash;
    for (std::uint64_t at = 0; at < file.size(); at += block.size()) {
        block.resize(std::min(file.size() - at, kBlock));
        file.read(at, block);
        hash.add(block);
    }
    return hash.hex();
}

}  // namespace zeroproof::harness
