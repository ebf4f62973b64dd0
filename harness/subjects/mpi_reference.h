// The built-in reference with a process for each rank: what one machine's threads cannot show, over
// the MPI that is there.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "harness/protocol/evidence_document.h"
#include "harness/subjects/mpi_job.h"
#include "suites/conformance/subject.h"

namespace zeroproof::harness {

// What the reference says of itself over MPI, and what it does not promise there.
suites::Declaration mpi_reference_declaration(int ranks);

// Most ranks that run at once, the twin's included.
int ranks_needed(const suites::Case& c);

// All ranks have the same cases in the same order; a twin comes with its case. Cases of fewer ranks
// than the job run on the first ones.
//
// The subject of rank 0, which tells the others what to do. A case that ends by a failure ends the
// job: ranks may be stuck in it. Then no further case is delivered, and the owner calls
// MpiWorld::abort once it has reported.
class MpiReference : public suites::Subject {
  public:
    // `job` and `cases` outlive it.
    MpiReference(MpiJob& job, const std::vector<const suites::Case*>& cases);

    const suites::Declaration& declaration() const override { return declaration_; }
    suites::Evidence run(const suites::Case& c, std::chrono::milliseconds timeout) override;
    bool runs_batches() const override { return true; }
    void run_batch(const std::vector<const suites::Case*>& cases, std::chrono::milliseconds timeout,
                   const Deliver& deliver) override;

    bool has_failed() const { return has_failed_; }

  private:
    suites::Evidence run_program(const suites::Case& c);
    suites::Evidence run_transport_case(const suites::Case& c);

    MpiJob& job_;
    suites::Declaration declaration_;
    std::map<const suites::Case*, std::size_t> places_;
    bool has_failed_ = false;
};

// On the other ranks: does what rank 0 tells until it ends; returns the code that it gave.
int serve_mpi_reference(MpiJob& job, const std::vector<const suites::Case*>& cases);
// On rank 0.
void end_mpi_reference(MpiJob& job, int code);

}  // namespace zeroproof::harness
