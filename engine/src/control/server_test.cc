#include "control/server.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control/testing/golden.h"

namespace dutperf::control {
namespace {

using testing::golden;

constexpr int kPatienceMs = 5000;

// A server at one end of a socket pair, the plan's end in the test's hands.
class ServerTest : public ::testing::Test {
 protected:
  ServerTest() {
    int fds[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    client_ = fds[0];
    server_ = std::make_unique<Server>(fds[1], timeval{.tv_sec = 0, .tv_usec = 50'000});
  }
  ~ServerTest() override { hang_up(); }

  void hang_up() {
    if (client_ >= 0) close(client_);
    client_ = -1;
  }

  void say(const std::string& bytes) const {
    ASSERT_EQ(::send(client_, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  }
  void ask(const Json& message) const { say(message.dump() + "\n"); }

  // All lines that the server has sent so far.
  std::vector<Json> heard() const {
    std::string text(65536, '\0');
    const ssize_t size = recv(client_, text.data(), text.size(), MSG_DONTWAIT);
    text.resize(size < 0 ? 0 : static_cast<size_t>(size));
    std::vector<Json> lines;
    for (size_t end = 0; (end = text.find('\n')) != std::string::npos; text.erase(0, end + 1)) {
      lines.push_back(Json::parse(text.substr(0, end)));
    }
    EXPECT_EQ(text, "") << "a line without end";
    return lines;
  }

  int client_ = -1;
  std::unique_ptr<Server> server_;
};

TEST_F(ServerTest, AnswersTheFirstRequestWithTheReasonWhyItCannotStart) {
  ask(golden("engine.hello.params"));
  server_->refuse(
      ProtocolError(kEnvironmentError, "port left: there is no interface tl",
                    "run 'ip link' in the same network namespace to see what there is"));
  EXPECT_EQ(heard(), std::vector{golden("error")});
}

TEST_F(ServerTest, RefusesWithoutAnIdWhatItCannotRead) {
  say("no JSON at all\n");
  server_->refuse(ProtocolError(kInvalidRequest, "a request needs jsonrpc \"2.0\", id and method"));
  EXPECT_EQ(heard(), std::vector{golden("error-unreadable")});
}

TEST_F(ServerTest, StopsRefusingWhenTheClientIsGone) {
  hang_up();
  server_->refuse(ProtocolError(kEnvironmentError, "no device"));
}

TEST_F(ServerTest, EndsATrialOnAbort) {
  ask(golden("trial.abort.params"));
  EXPECT_FALSE(server_->wait(-1, kPatienceMs));
  EXPECT_EQ(heard(), std::vector{golden("trial.abort.result")});
}

TEST_F(ServerTest, HasATrialStopAndGoesOnUntilItHas) {
  EXPECT_FALSE(server_->stop_requested());
  ask(golden("trial.stop.params"));
  EXPECT_TRUE(server_->wait(-1, kPatienceMs));
  EXPECT_TRUE(server_->stop_requested());
  EXPECT_EQ(heard(), std::vector{golden("trial.stop.result")});
}

TEST_F(ServerTest, RefusesOtherCallsDuringATrialAndGoesOn) {
  ask({{"jsonrpc", "2.0"}, {"id", 3}, {"method", "ports.status"}, {"params", Json::object()}});
  EXPECT_TRUE(server_->wait(-1, kPatienceMs));
  EXPECT_EQ(heard(), std::vector{golden("error-busy")});
}

TEST_F(ServerTest, AnswersUnreadableLinesDuringATrialAndGoesOn) {
  say("{\n");
  EXPECT_TRUE(server_->wait(-1, kPatienceMs));
  const std::vector<Json> lines = heard();
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0]["error"]["code"], kParseError);
  EXPECT_TRUE(lines[0]["id"].is_null());
}

TEST_F(ServerTest, AnswersRequestsThatAreNotJsonRpcDuringATrial) {
  for (const char* line : {R"([])", R"(1)", R"({"id":1,"method":"trial.abort"})",
                           R"({"jsonrpc":"2.0","method":"trial.abort"})",
                           R"({"jsonrpc":"1.0","id":1,"method":"trial.abort"})",
                           R"({"jsonrpc":"2.0","id":1,"method":7})"}) {
    say(std::string(line) + "\n");
    EXPECT_TRUE(server_->wait(-1, kPatienceMs)) << line;
    const std::vector<Json> lines = heard();
    ASSERT_EQ(lines.size(), 1U) << line;
    EXPECT_EQ(lines[0]["error"]["code"], kInvalidRequest) << line;
  }
}

TEST_F(ServerTest, WaitsForTheRestOfALine) {
  const std::string line = golden("trial.abort.params").dump() + "\n";
  say(line.substr(0, 20));
  EXPECT_TRUE(server_->wait(-1, kPatienceMs));
  EXPECT_TRUE(heard().empty());
  say(line.substr(20));
  EXPECT_FALSE(server_->wait(-1, kPatienceMs));
}

TEST_F(ServerTest, EndsATrialWhenTheClientIsGone) {
  hang_up();
  EXPECT_FALSE(server_->wait(-1, kPatienceMs));
}

TEST_F(ServerTest, EndsATrialWhenTheClientReadsNothing) {
  const Json much = {{"text", std::string(1 << 20, 'x')}};
  server_->notify("trial.progress", much);  // would hang
  EXPECT_FALSE(server_->wait(-1, 0));
}

TEST_F(ServerTest, WakesUpWhenTheTrialIsDone) {
  const int done = eventfd(1, EFD_NONBLOCK);
  EXPECT_TRUE(server_->wait(done, -1));  // would hang
  close(done);
}

TEST_F(ServerTest, SendsProgressAsTheGoldenNotificationSays) {
  server_->notify("trial.progress", {{"trial_id", 41},
                                     {"phase", "running"},
                                     {"elapsed_ns", 500'113'902},
                                     {"sent", 906},
                                     {"received", 904}});
  EXPECT_EQ(heard(), std::vector{golden("trial.progress")});
}

TEST_F(ServerTest, NeverSendsInvalidUtf8) {
  server_->notify("trial.progress", {{"text", "\xff"}});
  EXPECT_EQ(heard().at(0)["params"]["text"], "\xef\xbf\xbd");
}

}  // namespace
}  // namespace dutperf::control
