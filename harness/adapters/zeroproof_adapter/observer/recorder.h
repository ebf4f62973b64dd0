// What the observed groups of this process did, and how hostile they are to be.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace zeroproof::observer {

// One operation on one tensor, as this rank started it. Ranks are world ranks.
struct Record {
    std::vector<int64_t> group;  // in group order
    uint64_t number = 0;         // place among the group's operations
    std::string op;
    std::string reduction;
    std::string type;
    int64_t in_elements = 0;
    int64_t out_elements = 0;
    int64_t peer = -1;  // root, or the other end
    int64_t action = -1;
    std::string phase;
    bool awaited = false;  // its rank waited, saw it complete, or took its future
    bool landed = false;   // its rank may use the output
};

// "all_reduce of 12 fp32 to 12, sum"
inline std::string describe(const Record& record) {
    std::string text = record.op + " of " + std::to_string(record.in_elements) + " " + record.type +
                       " to " + std::to_string(record.out_elements);
    if (record.reduction != "none") text += ", " + record.reduction;
    if (record.peer >= 0)
        text += (record.op == "send" || record.op == "receive" ? ", peer " : ", root ") +
                std::to_string(record.peer);
    return text;
}

struct Race {
    std::string kind;
    std::string operation;  // describe() of it
    uint64_t number;
    int64_t element;  // the first touched
};
inline constexpr char kInputTouched[] = "input touched in flight";
inline constexpr char kOutputTouched[] = "output touched in flight";
inline constexpr char kNotAwaited[] = "never waited for";

// Safe to call from any thread. Nobody calls into Python, waits or sleeps under its mutex, so that
// it can be locked with and without Python's interpreter lock.
class Recorder {
  public:
    using Handle = std::shared_ptr<Record>;

    void enter(int64_t action, std::string phase) {
        const std::lock_guard lock(mutex_);
        action_ = action;
        phase_ = std::move(phase);
    }

    // Writes an operation down before it starts: one that fails is evidence too.
    Handle start(Record record) {
        const std::lock_guard lock(mutex_);
        record.action = action_;
        record.phase = phase_;
        records_.push_back(std::make_shared<Record>(std::move(record)));
        return records_.back();
    }

    void set_awaited(const std::vector<Handle>& records) {
        const std::lock_guard lock(mutex_);
        for (const Handle& record : records) record->awaited = true;
    }

    void set_landed(const std::vector<Handle>& records) {
        const std::lock_guard lock(mutex_);
        for (const Handle& record : records) record->landed = true;
    }

    void set_peer(const std::vector<Handle>& records, int64_t peer) {
        const std::lock_guard lock(mutex_);
        for (const Handle& record : records) record->peer = peer;
    }

    std::vector<Record> take_records() {
        const std::lock_guard lock(mutex_);
        std::vector<Record> taken;
        taken.reserve(records_.size());
        for (const Handle& record : records_) taken.push_back(*record);
        records_.clear();
        return taken;
    }

    // Operations started since the last take_records() whose outputs may not be used yet, by name.
    // One that is dropped without a wait stays among them: its rank never learns that it ended.
    std::map<std::string, int64_t> in_flight() {
        const std::lock_guard lock(mutex_);
        std::map<std::string, int64_t> count;
        for (const Handle& record : records_)
            if (!record->landed) ++count[record->op];
        return count;
    }

    // From now on; what is in flight stays as it is. Ranks of one seed drift apart.
    void set_hostile(std::optional<uint64_t> seed, int64_t rank) {
        const std::lock_guard lock(mutex_);
        random_.reset();
        if (!seed) return;
        std::seed_seq mixed{*seed & 0xffffffff, *seed >> 32, static_cast<uint64_t>(rank)};
        random_.emplace(mixed);
    }

    bool is_hostile() {
        const std::lock_guard lock(mutex_);
        return random_.has_value();
    }

    // Sleeps for none to three `steps` if hostile.
    void pause(std::chrono::microseconds step) {
        uint64_t steps = 0;
        {
            const std::lock_guard lock(mutex_);
            if (random_) steps = (*random_)() % 4;
        }
        if (steps > 0) std::this_thread::sleep_for(steps * step);
    }

    void note(const char* kind, const Record& record, int64_t element) {
        const std::lock_guard lock(mutex_);
        races_.push_back({kind, describe(record), record.number, element});
    }

    std::vector<Race> take_races() {
        const std::lock_guard lock(mutex_);
        return std::exchange(races_, {});
    }

  private:
    std::mutex mutex_;
    int64_t action_ = -1;
    std::string phase_ = "initialise";
    std::vector<Handle> records_;
    std::vector<Race> races_;
    std::optional<std::mt19937_64> random_;  // if hostile
};

// Never destroyed: operations may be dropped after the end of main.
inline Recorder& recorder() {
    static Recorder& the = *new Recorder;
    return the;
}

}  // namespace zeroproof::observer
