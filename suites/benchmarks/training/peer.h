// PyTorch, which takes training steps when it is told to.
#pragma once

#include <sys/types.h>

#include <cstdio>
#include <string>
#include <vector>

namespace zeroproof {

// harness/adapters/zeroproof_adapter/training_peer.py. Between two calls its processes sleep.
class Peer {
  public:
    // Returns once the peer has warmed up. Throws std::runtime_error if it cannot begin; what it
    // has to say about that is on standard error.
    Peer(const std::string& python, const std::vector<std::string>& options);
    Peer(const Peer&) = delete;
    Peer& operator=(const Peer&) = delete;
    ~Peer();

    // In JSON: what it is and how it was set up.
    const std::string& description() const { return description_; }
    // The seconds of each of the next steps. Throws std::runtime_error if it has ended.
    std::vector<double> steps(int count);

  private:
    std::string line();

    pid_t pid_ = -1;
    std::FILE* to_ = nullptr;
    std::FILE* from_ = nullptr;
    std::string description_;
};

}  // namespace zeroproof
