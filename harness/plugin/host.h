// What stands behind the callbacks of zeroproof.h, for one rank.
#pragma once

#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "harness/plugin/plugin_channels.h"
#include "harness/plugin/plugin_memory.h"
#include "harness/plugin/plugin_model.h"
#include "harness/subjects/program_part.h"
#include "memory/space.h"

namespace zeroproof::harness {

class PluginHost {
  public:
    PluginHost(const suites::Case& c, const ProgramPart& part, int rank);
    PluginHost(const PluginHost&) = delete;
    PluginHost& operator=(const PluginHost&) = delete;

    // In the thread of the rank; both collective.
    void open(collectives::Communicator& world);
    void close() { channels_.close_all(); }

    const zeroproof_host* table() const { return &table_; }  // outlives this

    // Runs a function of the engine, which may call back meanwhile. Throws what is wrong with what
    // it did there, whatever it returns; PluginFault if it throws.
    zeroproof_status call(const char* function, const std::function<zeroproof_status()>& body);
    // As `call`. Throws PluginFault unless it returns ZEROPROOF_OK.
    void must(const char* function, const std::function<zeroproof_status()>& body);
    // What the engine has said in its last call of why it fails; else the number of its status.
    std::string reason(zeroproof_status status) const;
    // The run is over: nothing can be started any more.
    void refuse_from_now_on() { refuses_ = true; }

    void enter(memory::Phase phase) { space_.ledger().enter(phase); }
    const memory::Ledger& ledger() const { return space_.ledger(); }
    // The action of the program that the following belongs to, and the number of its micro-step.
    void begin(int action, std::size_t micro_step);
    int action() const { return action_; }
    suites::RankEvidence& evidence() { return evidence_; }
    // With traffic and peaks.
    suites::RankEvidence take_evidence();

    // How callbacks come in. `table` is whatever the engine gave; it is not read.
    template <typename Body>
    static zeroproof_status guarded(const zeroproof_host* table, const char* callback, bool frees,
                                    Body&& body) noexcept {
        PluginHost* host = in_call(table, callback);
        if (host == nullptr || (host->refuses_ && !frees)) return ZEROPROOF_ERROR;
        try {
            body(*host);
            return ZEROPROOF_OK;
        } catch (...) {
            host->fail(callback);
            return ZEROPROOF_ERROR;
        }
    }

    // For the callbacks.
    PluginMemory& memory() { return memory_; }
    PluginChannels& channels() { return channels_; }
    const PluginModel& model() const { return model_; }
    void forward(std::size_t unit, const zeroproof_tensor* weights);
    void begin_backward();
    void backward(std::size_t unit, const zeroproof_tensor* weights,
                  const zeroproof_tensor* gradients, float loss_scale, std::int32_t* used);
    void explain(const char* message);
    void log(const char* message) const;

  private:
    // The host whose engine is in a call in this thread, if `table` is its table. Else the mistake
    // is noted.
    static PluginHost* in_call(const zeroproof_host* table, const char* callback) noexcept;
    // Keeps the exception that is being handled, if it is the first.
    void fail(const char* callback) noexcept;

    const suites::Case& case_;
    int rank_;
    memory::Space space_;
    collectives::Meter meter_;
    suites::RankEvidence evidence_;
    PluginMemory memory_;
    PluginChannels channels_;
    PluginModel model_;
    zeroproof_host& table_;
    int action_ = -1;
    std::size_t micro_step_ = 0;
    bool refuses_ = false;
    std::exception_ptr failure_;
    std::string explanation_;
};

// Functions of the host that were called where none may be: in no call of the engine's, or in a
// thread of its own. One sentence, or an empty text. Forgets them.
std::string take_stray_calls();

// A table, but for the handles. It stays for ever, so that an engine which calls a host that is
// gone is told so.
zeroproof_host& new_table();

}  // namespace zeroproof::harness
