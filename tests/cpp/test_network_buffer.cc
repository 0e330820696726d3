// Shared-buffer arithmetic, packet queues and the bit rows of a NIC.
#include <doctest/doctest.h>

#include <cstdint>
#include <random>
#include <set>
#include <vector>

#include "network/nic.hh"
#include "network/port.hh"
#include "network/shared_buffer.hh"

using namespace hpcmoe;

namespace {

Port ingress(std::uint32_t headroom, std::uint32_t alpha_shift = 3) {
  Port port;
  port.headroom = headroom;
  port.alpha_shift = alpha_shift;
  return port;
}

std::uint32_t pop_seq(EventQueue& queue, ChunkPool& pool) {
  const std::uint32_t seq = queue.front().seq;
  queue.pop(pool);
  return seq;
}

}  // namespace

TEST_CASE("buffer: the first 4096 bytes of a port are its own") {
  SharedBuffer buffer{80'000};
  Port in = ingress(10'000);
  buffer.admit(in, 3000);
  buffer.admit(in, 1096);
  CHECK(in.ingress_bytes == 4096);
  CHECK(SharedBuffer::used(in) == 0);
  CHECK(buffer.shared_used == 0);
  buffer.admit(in, 1);
  CHECK(SharedBuffer::used(in) == 1);
  CHECK(buffer.shared_used == 1);
  CHECK(in.headroom_used == 0);
}

TEST_CASE("buffer: a packet that straddles the reserve shares only its part above it") {
  SharedBuffer buffer{80'000};
  Port in = ingress(10'000);
  buffer.admit(in, 4000);
  buffer.admit(in, 1036);
  CHECK(in.ingress_bytes == 5036);
  CHECK(buffer.shared_used == 940);
  buffer.admit(in, 1036);
  CHECK(buffer.shared_used == 1976);
}

TEST_CASE("buffer: thresholds shrink as the shared part fills") {
  SharedBuffer buffer{80'000};
  Port in = ingress(10'000);
  CHECK(buffer.threshold(in) == 10'000);
  buffer.shared_used = 8;
  CHECK(buffer.threshold(in) == 9999);
  CHECK(buffer.threshold(ingress(0, 2)) == 19'998);
  CHECK(buffer.threshold(ingress(0, 0)) == 79'992);
}

// Threshold 2000: six packets of 1036 reach 6216 = 4096 + 2120, above (16000 - 1084) / 8 = 1864.
TEST_CASE("buffer: above the threshold packets go to headroom, then they are refused") {
  SharedBuffer buffer{16'000};
  Port in = ingress(2072);
  for (int i = 0; i < 5; ++i) {
    CHECK_FALSE(buffer.rejects(in, 1036));
    buffer.admit(in, 1036);
    CHECK_FALSE(buffer.wants_pause(in));
  }
  CHECK(in.ingress_bytes == 5180);
  CHECK(buffer.shared_used == 1084);
  CHECK_FALSE(buffer.rejects(in, 1036));
  buffer.admit(in, 1036);
  CHECK(in.headroom_used == 1036);
  CHECK(in.ingress_bytes == 5180);
  CHECK(buffer.wants_pause(in));
  CHECK_FALSE(buffer.rejects(in, 1036));  // fills the headroom to the byte
  buffer.admit(in, 1036);
  CHECK(in.headroom_used == 2072);
  CHECK(buffer.rejects(in, 1036));
  CHECK_FALSE(buffer.rejects(in, 780));  // 1084 + 780 is the threshold: still a shared byte
  CHECK(buffer.rejects(in, 781));
}

TEST_CASE("buffer: used at the threshold asks for a pause without headroom") {
  SharedBuffer buffer{8 * 1036};
  Port in = ingress(10'000, 0);
  in.ingress_bytes = kReserveBytes;
  buffer.admit(in, 4144);  // used 4144 = threshold (8288 - 4144) >> 0
  CHECK(in.headroom_used == 0);
  CHECK(buffer.wants_pause(in));
}

TEST_CASE("buffer: a release empties headroom first, then shared bytes, then the reserve") {
  SharedBuffer buffer{16'000};
  Port in = ingress(5000);
  for (int i = 0; i < 7; ++i) buffer.admit(in, 1036);
  REQUIRE(in.headroom_used == 2072);
  buffer.release(in, 1500);
  CHECK(in.headroom_used == 572);
  CHECK(in.ingress_bytes == 5180);
  CHECK(buffer.shared_used == 1084);
  buffer.release(in, 1036);  // 572 from headroom, 464 from the shared bytes
  CHECK(in.headroom_used == 0);
  CHECK(in.ingress_bytes == 4716);
  CHECK(buffer.shared_used == 620);
  buffer.release(in, 1036);
  CHECK(buffer.shared_used == 0);
  CHECK(in.ingress_bytes == 3680);
}

TEST_CASE("buffer: a resume needs empty headroom and 3072 bytes below the threshold, or nothing used") {
  SharedBuffer buffer{80'000};
  Port in = ingress(10'000);
  in.ingress_bytes = kReserveBytes + 6928;
  CHECK(buffer.wants_resume(in));  // 6928 + 3072 = 10000
  in.ingress_bytes += 1;
  CHECK_FALSE(buffer.wants_resume(in));
  buffer.shared_used = 79'000;
  in.ingress_bytes = kReserveBytes;
  CHECK(buffer.wants_resume(in));
  in.headroom_used = 1;
  CHECK_FALSE(buffer.wants_resume(in));
}

TEST_CASE("buffer: more headroom and reserve than buffer wraps to a threshold that nothing reaches") {
  SharedBuffer buffer{std::uint32_t{1000} - 2000};
  Port in = ingress(100);
  CHECK(buffer.threshold(in) == (4294966296U >> 3));
  for (int i = 0; i < 1000; ++i) buffer.admit(in, 1036);
  CHECK(in.headroom_used == 0);
  CHECK_FALSE(buffer.rejects(in, 1036));
  CHECK_FALSE(buffer.wants_pause(in));
}

TEST_CASE("buffer: any order of admissions and releases ends empty") {
  std::mt19937 random(11);
  SharedBuffer buffer{20'000};
  std::vector<Port> ports(3, ingress(4000));
  std::vector<std::pair<std::size_t, std::uint32_t>> held;
  for (int i = 0; i < 5000; ++i) {
    const std::size_t at = random() % ports.size();
    const std::uint32_t size = 1 + random() % 1500;
    if (random() % 2 == 0 && !buffer.rejects(ports[at], size)) {
      buffer.admit(ports[at], size);
      held.emplace_back(at, size);
    } else if (!held.empty()) {
      buffer.release(ports[held.front().first], held.front().second);
      held.erase(held.begin());
    }
  }
  REQUIRE_FALSE(held.empty());
  for (const auto& [at, size] : held) buffer.release(ports[at], size);
  for (const Port& port : ports) {
    CHECK(port.ingress_bytes == 0);
    CHECK(port.headroom_used == 0);
  }
  CHECK(buffer.shared_used == 0);
}

TEST_CASE("packet queue: first in, first out, and usable again when empty") {
  ChunkPool pool;
  EventQueue queue;
  CHECK(queue.empty());
  for (int round = 0; round < 3; ++round) {
    queue.push(pool, {.seq = 1});
    queue.push(pool, {.seq = 2});
    CHECK(pop_seq(queue, pool) == 1);
    queue.push(pool, {.seq = 3});
    CHECK(pop_seq(queue, pool) == 2);
    CHECK(pop_seq(queue, pool) == 3);
    CHECK(queue.empty());
  }
  CHECK(pool.taken() == 1);
}

TEST_CASE("packet queue: random use keeps the order, and gives chunks back") {
  std::mt19937 random(3);
  ChunkPool pool;
  std::vector<EventQueue> queues(3);
  std::uint32_t pushed[3] = {}, popped[3] = {};
  for (int phase = 0; phase < 40; ++phase) {
    const std::uint32_t odds = phase % 2 == 0 ? 7 : 3;  // of ten: queues grow, then shrink
    for (int i = 0; i < 200; ++i) {
      const std::size_t q = random() % 3;
      if (random() % 10 < odds) {
        queues[q].push(pool, {.seq = pushed[q]++});
      } else if (!queues[q].empty()) {
        CHECK(pop_seq(queues[q], pool) == popped[q]++);
      }
    }
  }
  for (std::size_t q = 0; q < 3; ++q) {
    while (!queues[q].empty()) CHECK(pop_seq(queues[q], pool) == popped[q]++);
    CHECK(popped[q] == pushed[q]);
    CHECK(pushed[q] > 10 * kChunkEvents);
  }
  CHECK(pool.taken() == 3);  // each keeps one
}

TEST_CASE("bit row: finds the first set bit of a range") {
  BitRow row;
  row.resize(200);
  CHECK(row.find(0, 200) == 200);
  for (std::size_t i : {0, 63, 64, 127, 130, 199}) row.set(i, true);
  CHECK(row.find(0, 200) == 0);
  CHECK(row.find(1, 200) == 63);
  CHECK(row.find(64, 200) == 64);
  CHECK(row.find(65, 127) == 127);  // the range's end means none
  CHECK(row.find(65, 128) == 127);
  CHECK(row.find(131, 200) == 199);
  CHECK(row.find(131, 199) == 199);
  CHECK(row.find(50, 50) == 50);
  CHECK(row.find(60, 20) == 20);
  row.set(127, false);
  CHECK(row.find(65, 200) == 130);
}

TEST_CASE("bit row: growing keeps what is set") {
  BitRow row;
  row.resize(1);
  row.set(0, true);
  row.resize(65);
  CHECK(row.find(0, 65) == 0);
  CHECK(row.find(1, 65) == 65);
  row.set(64, true);
  CHECK(row.find(1, 65) == 64);
}

TEST_CASE("bit row: agrees with a set of numbers") {
  std::mt19937 random(3);
  BitRow row;
  row.resize(300);
  std::set<std::size_t> reference;
  for (int i = 0; i < 3000; ++i) {
    const std::size_t at = random() % 300;
    if (random() % 3 == 0) {
      row.set(at, true);
      reference.insert(at);
    } else {
      row.set(at, false);
      reference.erase(at);
    }
    const std::size_t from = random() % 300, to = from + random() % (301 - from);
    const auto found = reference.lower_bound(from);
    CHECK(row.find(from, to) == (found == reference.end() || *found >= to ? to : *found));
  }
}
