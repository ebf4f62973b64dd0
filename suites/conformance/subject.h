// An implementation under test.
#pragma once

#include <chrono>
#include <functional>
#include <vector>

#include "suites/conformance/declaration.h"
#include "suites/conformance/evidence.h"

namespace zeroproof::suites {

class Subject {
  public:
    virtual ~Subject() = default;
    virtual const Declaration& declaration() const = 0;
    // Never throws for what the implementation does: that is evidence. Several threads may call.
    virtual Evidence run(const Case& c, std::chrono::milliseconds timeout) = 0;

    // Whether it is started once for many cases; then `run_batch` is called, by one thread.
    virtual bool runs_batches() const { return false; }
    // Calls `deliver(index, evidence)` once for each case, as they come. `deliver` returns whether
    // to go on.
    using Deliver = std::function<bool(std::size_t index, Evidence evidence)>;
    virtual void run_batch(const std::vector<const Case*>& cases, std::chrono::milliseconds timeout,
                           const Deliver& deliver);
};

}  // namespace zeroproof::suites
