#include "suites/conformance/subject.h"

namespace zeroproof::suites {

void Subject::run_batch(const std::vector<const Case*>& cases, std::chrono::milliseconds timeout,
                        const Deliver& deliver) {
    for (std::size_t i = 0; i < cases.size(); ++i)
        if (!deliver(i, run(*cases[i], timeout))) return;
}

}  // namespace zeroproof::suites
