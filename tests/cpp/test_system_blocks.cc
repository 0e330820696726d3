// Message matching, event tables, queue choice, trees: each on its own.
#include <doctest/doctest.h>

#include <string>

#include "ideal_network.hh"
#include "system/collectives/double_binary_tree.hh"
#include "system/event_table.hh"
#include "system/message_matcher.hh"
#include "system/queue_levels.hh"

using namespace hpcmoe;
using namespace hpcmoe::testing;

namespace {

Completion node(std::uint32_t index) { return {Completion::Kind::node, 0, index, nullptr}; }

bool is_none(const Completion& completion) { return completion.kind == Completion::Kind::none; }

}  // namespace

TEST_CASE("matcher: bytes that have arrived serve later receives") {
  MessageMatcher matcher;
  const MessageKey key{5, 0, 1};
  CHECK(is_none(matcher.arrive(key, 100)));
  CHECK(is_none(matcher.arrive(key, 50)));
  CHECK(matcher.receive(key, 120, node(1)));
  CHECK_FALSE(matcher.receive(key, 40, node(2)));  // 30 of them are there
  CHECK(is_none(matcher.arrive(key, 4)));
  CHECK(matcher.arrive(key, 6).index == 2);
  CHECK_FALSE(matcher.receive(key, 1, node(3)));
}

TEST_CASE("matcher: what arrives beyond the need stands by") {
  MessageMatcher matcher;
  const MessageKey key{5, 0, 1};
  CHECK_FALSE(matcher.receive(key, 10, node(1)));
  CHECK(matcher.arrive(key, 25).index == 1);
  CHECK(matcher.receive(key, 15, node(2)));
}

TEST_CASE("matcher: a second receive replaces the first and adds its bytes") {
  MessageMatcher matcher;
  const MessageKey key{5, 0, 1};
  CHECK_FALSE(matcher.receive(key, 10, node(1)));
  CHECK_FALSE(matcher.receive(key, 5, node(2)));
  CHECK(is_none(matcher.arrive(key, 10)));
  CHECK(matcher.arrive(key, 5).index == 2);
}

TEST_CASE("matcher: many keys come and go") {
  MessageMatcher matcher;
  constexpr std::uint32_t kKeys = 3000;
  const auto key = [](std::uint32_t i) { return MessageKey{500'000'000 + i / 7, i % 7, i % 5}; };
  for (std::uint32_t round = 0; round < 3; ++round) {
    for (std::uint32_t i = 0; i < kKeys; ++i) REQUIRE_FALSE(matcher.receive(key(i), i + 1, node(i)));
    for (std::uint32_t i = 0; i < kKeys; i += 2) REQUIRE(matcher.arrive(key(i), i + 1).index == i);
    std::uint32_t waiting = 0;
    matcher.for_each_waiting(
        [&](const MessageMatcher::Entry& entry) { waiting += entry.completion.index % 2; });
    REQUIRE(waiting == kKeys / 2);
    for (std::uint32_t i = 1; i < kKeys; i += 2) REQUIRE(matcher.arrive(key(i), i + 1).index == i);
  }
  std::uint32_t left = 0;
  matcher.for_each_waiting([&](const MessageMatcher::Entry&) { ++left; });
  CHECK(left == 0);
}

namespace {

class TableClient final : public NetworkClient {
 public:
  explicit TableClient(IdealNetwork& network) : network_(network), timers_(network), table_(timers_, 0) {}

  void add(TimeNs delay_ns, std::uint64_t name) {
    table_.schedule(delay_ns, {RankEventKind::node_done, name});
  }
  void on_timer(std::uint32_t) override {
    timers_.called_back();
    table_.drain([this](const RankEvent& event) {
      log_ += std::to_string(network_.now()) + ":" + std::to_string(event.value) + " ";
      if (event.value == 1) add(0, 10);  // joins the list being drained
      if (event.value == 10) add(3, 11);
    });
  }
  void on_flow_finished(std::uint64_t) override {}

  const std::string& log() const { return log_; }
  std::uint64_t pending() const { return timers_.pending(); }

 private:
  IdealNetwork& network_;
  Timers timers_;
  EventTable table_;
  std::string log_;
};

}  // namespace

TEST_CASE("event table: one timer per tick, first in first out within it") {
  IdealNetwork network;
  TableClient client(network);
  client.add(5, 1);
  client.add(9, 2);
  client.add(5, 3);
  client.add(7, 4);
  client.add(5, 5);
  CHECK(client.pending() == 3);
  network.run(client);
  CHECK(client.log() == "5:1 5:3 5:5 5:10 7:4 8:11 9:2 ");
  CHECK(network.timers() == 4);
  CHECK(client.pending() == 0);
}

namespace {

std::string choices(std::uint32_t per_dim, QueueUse use, int count) {
  QueueSelector selector(2, per_dim);
  std::string text;
  for (int i = 0; i < count; ++i) {
    const QueueChoice choice = selector.next(1, use);
    text += std::to_string(choice.queue) + (choice.clockwise ? "+ " : "- ");
  }
  return text;
}

}  // namespace

TEST_CASE("queues of a dimension are chosen in turn") {
  CHECK(choices(1, QueueUse::plain, 2) == "1+ 1+ ");
  CHECK(choices(1, QueueUse::first, 2) == "1+ 1+ ");
  CHECK(choices(1, QueueUse::last, 2) == "1- 1- ");
  CHECK(choices(2, QueueUse::plain, 3) == "2+ 3- 2+ ");
  CHECK(choices(2, QueueUse::first, 2) == "2+ 2+ ");
  CHECK(choices(2, QueueUse::last, 2) == "3- 3- ");
  CHECK(choices(5, QueueUse::plain, 6) == "5+ 6+ 7- 8- 9- 5+ ");
  CHECK(choices(5, QueueUse::first, 3) == "5+ 6+ 5+ ");
  CHECK(choices(5, QueueUse::last, 4) == "7- 8- 9- 7- ");
}

namespace {

std::string tree(std::uint32_t size, bool max_tree) {
  std::string text;
  const auto name = [](std::optional<std::uint32_t> index) { return index ? std::to_string(*index) : "-"; };
  for (std::uint32_t i = 0; i < size; ++i) {
    const TreePosition p = tree_position(i, size, max_tree);
    text += name(p.parent) + "(" + name(p.left) + "," + name(p.right) + ") ";
  }
  return text;
}

}  // namespace

TEST_CASE("trees: parent(left,right) by index") {
  CHECK(tree(2, true) == "1(-,-) -(0,-) ");
  CHECK(tree(2, false) == "-(1,-) 0(-,-) ");
  CHECK(tree(4, true) == "1(-,-) 3(0,2) 1(-,-) -(1,-) ");
  CHECK(tree(4, false) == "-(2,-) 2(-,-) 0(1,3) 2(-,-) ");
  CHECK(tree(8, true) == "1(-,-) 3(0,2) 1(-,-) 7(1,5) 5(-,-) 3(4,6) 5(-,-) -(3,-) ");
  CHECK(tree(8, false) == "-(4,-) 2(-,-) 4(1,3) 2(-,-) 0(2,6) 6(-,-) 4(5,7) 6(-,-) ");
  const TreePosition inner = tree_position(11, 16, true);
  CHECK(*inner.parent == 7);
  CHECK(*inner.left == 9);
  CHECK(*inner.right == 13);
}
