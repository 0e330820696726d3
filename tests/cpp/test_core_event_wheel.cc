// The event wheel: one total order by time, then by order of scheduling.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <ostream>
#include <random>
#include <utility>
#include <vector>

#include "core/event_wheel.hh"

using namespace hpcmoe;

namespace {

using Log = std::vector<std::pair<TimeNs, std::uint32_t>>;

void schedule(EventWheel& wheel, TimeNs time, std::uint32_t what) { wheel.schedule({.seq = what}, time); }

constexpr auto kNoPreparation = [](const Event&) {};

// Runs everything; `on_event(time, what)` may schedule more.
template <class OnEvent>
Log run(EventWheel& wheel, OnEvent on_event, bool ahead = false) {
  Log log;
  std::uint64_t handled = 0;
  while (wheel.next_time() != kNever) {
    wheel.advance(wheel.next_time());
    handled += wheel.run_instant(
        [&](const Event& event) {
          log.emplace_back(wheel.now(), event.seq);
          on_event(wheel.now(), event.seq);
        },
        ahead, kNoPreparation);
  }
  CHECK(handled == log.size());
  CHECK(wheel.chunks().taken() == 0);
  return log;
}

Log run(EventWheel& wheel) {
  return run(wheel, [](TimeNs, std::uint32_t) {});
}

}  // namespace

TEST_CASE("wheel: an empty wheel has no next time") {
  EventWheel wheel(1000);
  CHECK(wheel.empty());
  CHECK(wheel.next_time() == kNever);
  CHECK(wheel.run_instant([](const Event&) {}, true, kNoPreparation) == 0);
}

TEST_CASE("wheel: events run by time, and first in, first out at equal times") {
  EventWheel wheel(1000);
  schedule(wheel, 7, 1);
  schedule(wheel, 3, 2);
  schedule(wheel, 7, 3);
  schedule(wheel, 0, 4);
  schedule(wheel, 3, 5);
  CHECK(run(wheel) == Log{{0, 4}, {3, 2}, {3, 5}, {7, 1}, {7, 3}});
  CHECK(wheel.empty());
}

TEST_CASE("wheel: an event scheduled for the running instant runs after all that stand there") {
  EventWheel wheel(1000);
  schedule(wheel, 5, 1);
  schedule(wheel, 5, 2);
  const Log log = run(wheel, [&](TimeNs now, std::uint32_t what) {
    if (what == 1) schedule(wheel, now, 3);
    if (what == 3) schedule(wheel, now, 4);
  });
  CHECK(log == Log{{5, 1}, {5, 2}, {5, 3}, {5, 4}});
}

TEST_CASE("wheel: a far event stands before one scheduled later for the same time") {
  EventWheel wheel(1024);
  schedule(wheel, 5000, 1);  // beyond the horizon: waits in the heap
  schedule(wheel, 5000, 2);
  schedule(wheel, 4500, 3);
  const Log log = run(wheel, [&](TimeNs, std::uint32_t what) {
    if (what == 3) schedule(wheel, 5000, 4);  // within the horizon by now
  });
  CHECK(log == Log{{4500, 3}, {5000, 1}, {5000, 2}, {5000, 4}});
}

TEST_CASE("wheel: the horizon's edge") {
  EventWheel wheel(1024);
  schedule(wheel, 1023, 1);  // last slot
  schedule(wheel, 1024, 2);  // would share the first slot with time 0
  schedule(wheel, 0, 3);
  schedule(wheel, 1023, 4);
  schedule(wheel, 1024, 5);
  CHECK(run(wheel) == Log{{0, 3}, {1023, 1}, {1023, 4}, {1024, 2}, {1024, 5}});
}

TEST_CASE("wheel: slots wrap around many times") {
  EventWheel wheel(1);  // the smallest wheel there is
  Log expected;
  for (std::uint32_t i = 0; i < 100; ++i) expected.emplace_back(i * 700, i);
  schedule(wheel, 0, 0);
  const Log log = run(wheel, [&](TimeNs now, std::uint32_t what) {
    if (what + 1 < 100) schedule(wheel, now + 700, what + 1);
  });
  CHECK(log == expected);
}

TEST_CASE("wheel: time jumps over idle gaps of any length") {
  EventWheel wheel(1024);
  schedule(wheel, 1, 1);
  schedule(wheel, 3'000'000'000'000, 2);
  schedule(wheel, 3'000'000'001'500, 3);
  schedule(wheel, kNever - 1, 4);
  CHECK(wheel.next_time() == 1);
  CHECK(run(wheel) == Log{{1, 1}, {3'000'000'000'000, 2}, {3'000'000'001'500, 3}, {kNever - 1, 4}});
}

TEST_CASE("wheel: next_time does not move the clock") {
  EventWheel wheel(1024);
  schedule(wheel, 900, 1);
  CHECK(wheel.next_time() == 900);
  CHECK(wheel.next_time() == 900);
  CHECK(wheel.now() == 0);
  schedule(wheel, 100, 2);
  CHECK(wheel.next_time() == 100);
}

TEST_CASE("wheel: an instant of any number of events keeps their order") {
  for (std::uint32_t count = 1; count < 5 * kChunkEvents; ++count) {
    EventWheel wheel(1024);
    Log expected;
    for (std::uint32_t i = 0; i < count; ++i) {
      schedule(wheel, 3, i);
      expected.emplace_back(3, i);
    }
    expected.emplace_back(3, count);
    const auto on_event = [&](TimeNs now, std::uint32_t what) {
      if (what == 0) schedule(wheel, now, count);  // behind all of them
    };
    const Log log = run(wheel, on_event, count % 2 == 0);
    CHECK(log == expected);
  }
}

TEST_CASE("wheel: looking ahead, events are prepared in order before they are handled") {
  EventWheel wheel(1024);
  constexpr std::uint32_t kCount = 4 * kChunkEvents + 3;
  for (std::uint32_t i = 0; i < kCount; ++i) schedule(wheel, 0, i);
  for (std::uint32_t i = 0; i < kCount; ++i) schedule(wheel, 900, kCount + i);  // the next instant
  std::vector<std::uint32_t> prepared;
  std::uint32_t handled = 0;
  while (wheel.next_time() != kNever) {
    wheel.advance(wheel.next_time());
    wheel.run_instant(
        [&](const Event& event) {
          CHECK(event.seq == handled++);
          if (event.seq >= kChunkEvents) {
            CHECK(std::find(prepared.begin(), prepared.end(), event.seq) != prepared.end());
          }
        },
        true, [&](const Event& event) { prepared.push_back(event.seq); });
  }
  CHECK(handled == 2 * kCount);
  REQUIRE(prepared.size() == 2 * kCount - kChunkEvents);  // nothing comes before the first chunk
  for (std::uint32_t i = 0; i < prepared.size(); ++i) CHECK(prepared[i] == i + kChunkEvents);
}

TEST_CASE("wheel: every field of an event comes back, near and far") {
  for (const TimeNs time : {TimeNs{10}, TimeNs{1'000'000}}) {
    EventWheel wheel(1024);
    const Event sent{1, 2, 3, 4, 5, EventKind::nack, kEcnMarked, 6, 7};
    wheel.schedule(sent, time);
    wheel.advance(wheel.next_time());
    wheel.run_instant([&](const Event& e) { CHECK(std::memcmp(&e, &sent, sizeof e) == 0); }, false,
                      kNoPreparation);
    CHECK(wheel.now() == time);
  }
}

TEST_CASE("wheel: a run of many events needs no more chunks than are pending at once") {
  EventWheel wheel(1024);
  for (std::uint32_t i = 0; i < 10; ++i) schedule(wheel, i, 0);
  std::size_t most = 0;
  run(wheel, [&](TimeNs now, std::uint32_t) {
    most = std::max(most, wheel.chunks().taken());
    if (now < 100'000) schedule(wheel, now + 37, 0);
  });
  CHECK(most <= 11);  // one of them is the running batch
}

// The same random schedule on the wheel and on an ordered multimap, whose order is the definition.
TEST_CASE("wheel: the order is that of a sorted list") {
  for (const TimeNs horizon : {TimeNs{1}, TimeNs{2000}, TimeNs{70'000}}) {
    std::mt19937_64 random(7);
    EventWheel wheel(horizon);
    std::multimap<TimeNs, std::uint32_t> reference;  // equal keys keep the order of insertion
    std::uint32_t count = 0;
    Log expected;
    const auto add = [&](TimeNs now) {
      constexpr TimeNs kSpans[] = {1, 3, 800, 1500, 200'000};
      const TimeNs time = now + random() % kSpans[random() % 5];
      schedule(wheel, time, count);
      reference.emplace(time, count++);
    };
    for (int i = 0; i < 50; ++i) add(0);
    const Log log = run(wheel, [&](TimeNs now, std::uint32_t) {
      expected.emplace_back(*reference.begin());
      reference.erase(reference.begin());
      if (count < 5000) add(now);
      if (count < 5000 && random() % 4 == 0) add(now);
    });
    CHECK(log == expected);
    CHECK(log.size() == count);
  }
}
