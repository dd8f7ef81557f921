#include "control_socket.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "commands.h"
#include "dpdk/error.h"
#include "gateway.h"

namespace dutperf::refdut {
namespace {

// A client's end that waits for nothing.
class Client {
 public:
  explicit Client(const std::string& path) : fd_(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::copy(path.begin(), path.end(), address.sun_path);
    connected_ = connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  }
  ~Client() { close(fd_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  bool connected() const { return connected_; }
  void send(const std::string& text) { ::send(fd_, text.data(), text.size(), 0); }
  std::string received() {
    std::string text;
    char buffer[4096];
    for (ssize_t size; (size = recv(fd_, buffer, sizeof(buffer), 0)) > 0;) {
      text.append(buffer, static_cast<size_t>(size));
    }
    return text;
  }

 private:
  int fd_;
  bool connected_;
};

class Control : public ::testing::Test {
 protected:
  static std::string place() {
    return (std::filesystem::temp_directory_path() / ("refdut-test-" + std::to_string(getpid())))
        .string();
  }

  void poll() {
    socket_.poll([](const std::string& line) { return "<" + line + ">"; });
  }

  std::string path_ = place();
  ControlSocket socket_{path_};
};

TEST_F(Control, AnswersEachWholeLineInOrder) {
  Client client(path_);
  client.send("one\ntwo\nthr");
  poll();
  EXPECT_EQ(client.received(), "<one>\n<two>\n");
  client.send("ee\n");
  poll();
  EXPECT_EQ(client.received(), "<three>\n");
}

TEST_F(Control, ServesSeveralClientsAndForgetsThoseGone) {
  Client first(path_);
  {
    Client second(path_);
    second.send("x\n");
    poll();
    EXPECT_EQ(second.received(), "<x>\n");
  }
  poll();
  first.send("y\n");
  poll();
  EXPECT_EQ(first.received(), "<y>\n");
}

TEST_F(Control, SendsAnAnswerThatIsLongerThanTheBufferBitByBit) {
  const std::string answer(5'000'000, 'z');
  Client client(path_);
  client.send("long\n");
  std::string received;
  for (int i = 0; i < 1000 && received.size() <= answer.size(); ++i) {
    socket_.poll([&](const std::string&) { return answer; });
    received += client.received();
  }
  EXPECT_EQ(received, answer + "\n");
}

TEST_F(Control, IsNotTakenFromADeviceThatLives) {
  EXPECT_THROW(ControlSocket{path_}, dpdk::SetupError);
  EXPECT_TRUE(Client(path_).connected());
}

TEST_F(Control, IsItsOwnersAlone) {
  struct stat file = {};
  ASSERT_EQ(stat(path_.c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777, 0600U);
  EXPECT_EQ(file.st_uid, geteuid());
}

// What a client of another user is told, once somebody has let everybody reach the socket.
TEST_F(Control, AnswersNobodyElse) {
  if (geteuid() != 0) GTEST_SKIP() << "only root may become another user";
  ASSERT_EQ(chmod(path_.c_str(), 0666), 0);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    if (setuid(65534) != 0) _exit(1);
    Client client(path_);
    client.send("one\n");
    if (write(ends[1], "x", 1) != 1) _exit(1);
    std::string text;
    for (int i = 0; i < 1000 && text.empty(); ++i) {
      usleep(10'000);
      text = client.received();
    }
    _exit(text.find("owner and root only") != std::string::npos ? 0 : 2);
  }
  close(ends[1]);
  char connected = 0;
  ASSERT_EQ(read(ends[0], &connected, 1), 1);
  close(ends[0]);
  int answered = 0;
  socket_.poll([&](const std::string&) {
    ++answered;
    return "";
  });
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(answered, 0);
}

TEST(ControlSocketFile, OfADeadDeviceIsReplacedAndGoesWithItsOwner) {
  const auto path =
      std::filesystem::temp_directory_path() / ("refdut-dead-" + std::to_string(getpid()));
  const int dead = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string text = path.string();
  std::copy(text.begin(), text.end(), address.sun_path);
  ASSERT_EQ(bind(dead, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  close(dead);
  {
    const ControlSocket socket(text);
    EXPECT_TRUE(Client(text).connected());
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(ControlSocketFile, ThatCannotBeMadeIsASetupError) {
  EXPECT_THROW(ControlSocket{"/nowhere/at/all"}, dpdk::SetupError);
  EXPECT_THROW(ControlSocket{std::string(200, 'x')}, dpdk::SetupError);
}

struct FakeDevice {
  std::optional<uint64_t> seed;
  Asked asked;
  void configure(const Behaviour& behaviour) { seed = behaviour.seed; }
  Json report(const Asked& what) {
    asked = what;
    return {{"trials", 1}};
  }
  Gateway* gateway() { return nat ? &*nat : nullptr; }
  uint64_t now_ns() const { return 5; }
  std::optional<Gateway> nat;
};

class TheCommands : public ::testing::Test {
 protected:
  Json answer(const std::string& line) { return Json::parse(commands_.answer(line)); }

  FakeDevice device_;
  Commands<FakeDevice> commands_{device_};
};

TEST_F(TheCommands, ConfigureReportAndStop) {
  EXPECT_EQ(answer(R"({"do": "configure", "behaviour": {"seed": 9}})")["configured"], true);
  EXPECT_EQ(device_.seed, 9U);
  EXPECT_EQ(answer(R"({"do": "report"})")["trials"], 1);
  EXPECT_EQ(device_.asked.trial, std::nullopt);
  EXPECT_FALSE(device_.asked.brief);
  answer(R"({"do": "report", "trial": 7})");
  EXPECT_EQ(device_.asked.trial, 7);
  answer(R"({"do": "report", "brief": true})");
  EXPECT_TRUE(device_.asked.brief);
  EXPECT_FALSE(commands_.stop_requested());
  EXPECT_EQ(answer(R"({"do": "stop"})")["trials"], 1);
  EXPECT_TRUE(commands_.stop_requested());
}

TEST_F(TheCommands, TellAndEmptyTheTableOfAGateway) {
  for (const char* line : {R"({"do": "connections"})", R"({"do": "clear_connections"})"}) {
    EXPECT_FALSE(answer(line)["error"]["hint"].get<std::string>().empty());
  }
  NatSettings settings;
  settings.table.entries = 10;
  device_.nat.emplace(settings, 1);
  for (const char* line : {R"({"do": "connections"})", R"({"do": "clear_connections"})",
                           R"({"do": "delete_connections"})"}) {
    EXPECT_EQ(answer(line)["connections"], 0) << line;
  }
  EXPECT_TRUE(answer(R"({"do": "reconnections"})").contains("error"));
}

TEST_F(TheCommands, RefuseWhatIsNoCommandAndChangeNothing) {
  for (const char* line :
       {"", "{", "7", "{}", R"({"do": "report", "trial": 65536})", R"({"do": "dance"})",
        R"({"do": "stop", "now": true})", R"({"do": "configure"})", "{\"do\": \"\xff\"}",
        R"({"do": "configure", "behaviour": {"sed": 1}})", R"({"do": 1e999})"}) {
    const Json error = answer(line)["error"];
    EXPECT_FALSE(error["message"].get<std::string>().empty()) << line;
    EXPECT_FALSE(error["hint"].get<std::string>().empty()) << line;
  }
  EXPECT_FALSE(commands_.stop_requested());
  EXPECT_EQ(device_.seed, std::nullopt);
}

}  // namespace
}  // namespace dutperf::refdut
