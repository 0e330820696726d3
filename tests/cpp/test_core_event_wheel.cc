// The event wheel: one total order by time, then by order of scheduling.
#include <doctest/doctest.h>

#include <cstdint>
#include <map>
#include <ostream>
#include <random>
#include <utility>
#include <vector>

#include "core/event_wheel.hh"

using namespace hpcmoe;

namespace {

using Log = std::vector<std::pair<TimeNs, std::uint32_t>>;

void schedule(EventWheel& wheel, TimeNs time, std::uint32_t what) {
  const std::uint32_t event = wheel.allocate();
  wheel[event].seq = what;
  wheel.schedule_at(event, time);
}

// Runs everything; `on_event(time, what)` may schedule more.
template <class OnEvent>
Log run(EventWheel& wheel, OnEvent on_event) {
  Log log;
  while (wheel.next_time() != kNever) {
    wheel.advance(wheel.next_time());
    std::uint64_t done = 0;
    for (std::uint32_t event; (event = wheel.take_batch()) != kNil;) {
      while (event != kNil) {
        const std::uint32_t next = wheel[event].next;
        const std::uint32_t what = wheel[event].seq;
        wheel.release(event);
        ++done;
        log.emplace_back(wheel.now(), what);
        on_event(wheel.now(), what);
        event = next;
      }
    }
    wheel.count_done(done);
  }
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
  CHECK(wheel.take_batch() == kNil);
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

TEST_CASE("wheel: records of the pool are used again, and come back clean") {
  EventWheel wheel(1024);
  const std::uint32_t first = wheel.allocate();
  const std::uint32_t second = wheel.allocate();
  CHECK(wheel.live() == 2);
  wheel[first].flags = kEcnMarked;
  wheel[first].hop = 3;
  wheel[first].wire = 99;
  wheel.release(first);
  CHECK(wheel.live() == 1);
  CHECK(wheel.allocate() == first);
  CHECK(wheel[first].flags == 0);
  CHECK(wheel[first].hop == 0);
  CHECK(wheel[first].wire == 0);
  CHECK(wheel[first].next == kNil);
  CHECK(wheel.capacity() == 2);
  wheel.release(second);
  wheel.release(first);
  CHECK(wheel.live() == 0);
}

TEST_CASE("wheel: a run of many events needs no more records than are pending at once") {
  EventWheel wheel(1024);
  for (std::uint32_t i = 0; i < 10; ++i) schedule(wheel, i, 0);
  run(wheel, [&](TimeNs now, std::uint32_t) {
    if (now < 100'000) schedule(wheel, now + 37, 0);
  });
  CHECK(wheel.capacity() == 10);
  CHECK(wheel.live() == 0);
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
