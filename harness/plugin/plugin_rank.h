// One rank of an engine, driven through a part of a case's program.
#pragma once

#include <string>

#include "harness/plugin/case_view.h"
#include "harness/plugin/host.h"
#include "harness/plugin/library.h"

namespace zeroproof::harness {

class PluginRank {
  public:
    // All outlive it.
    PluginRank(const zeroproof_engine& engine, const PluginDescription& description,
               const suites::Case& c, const ProgramPart& part, int rank);

    // In the thread of the rank. Throws PluginFault for what the engine gets wrong. Returns early
    // if a rank does not take the case.
    void run(collectives::Communicator& world);

    // Afterwards. What create() has returned, and why.
    zeroproof_status created() const { return created_; }
    const std::string& reason() const { return reason_; }
    suites::RankEvidence take_evidence() { return host_.take_evidence(); }

  private:
    // Whether every rank has been created.
    bool create(collectives::Communicator& world);
    void destroy();
    void run_program();
    void act(const suites::Action& action);
    suites::Snapshot& take_snapshot(suites::ActionKind kind, bool with_gradients);
    std::vector<suites::OwnedSlice> read_slices(bool with_gradients);
    // As many values as the engine says, and it may not write more.
    std::vector<float> read(const char* function, std::size_t elements,
                            const std::function<zeroproof_status(float*)>& body);
    bool observes(suites::Observation one) const { return description_.observed.has(one); }

    const zeroproof_engine& engine_;
    const PluginDescription& description_;
    const suites::Case& case_;
    const ProgramPart& part_;
    int rank_;
    CaseView view_;
    PluginHost host_;
    zeroproof_state* state_ = nullptr;
    zeroproof_status created_ = ZEROPROOF_ERROR;
    std::string reason_;
    std::size_t micro_step_ = 0;  // counted from the start of the program
    int in_window_ = 0;
};

}  // namespace zeroproof::harness
