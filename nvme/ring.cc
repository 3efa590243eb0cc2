#include "nvme/ring.h"

#include <liburing.h>
#include <linux/nvme_ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <iterator>
#include <utility>

namespace nvpi {
namespace {

constexpr unsigned sq_thread_idle_ms = 100;

}  // namespace

static_assert(sizeof(nvme_uring_cmd) == 72);
static_assert(offsetof(io_uring_sqe, cmd) == 48);

struct Ring::Uring {
  struct io_uring ring {};
  bool ready = false;
  ~Uring() {
    // Cancels nothing that the device has: the queue above has drained the ring, or given its slots up.
    if (ready) io_uring_queue_exit(&ring);
  }
};

Ring::Ring(GenericNode node, std::uint32_t capacity, const RingOptions& options)
    : node_(std::move(node)), capacity_(capacity), options_(options), uring_(std::make_unique<Uring>()) {}

Ring::~Ring() = default;

Result<std::unique_ptr<Ring>> Ring::open(const std::string& path, std::uint32_t capacity,
                                         const RingOptions& options) {
  auto node = GenericNode::open(path);
  if (!node) return fail(node.error());
  return open(std::move(*node), capacity, options);
}

Result<std::unique_ptr<Ring>> Ring::open(GenericNode node, std::uint32_t capacity,
                                         const RingOptions& options) {
  std::unique_ptr<Ring> ring(new Ring(std::move(node), capacity, options));
  if (const int error = ring->set_up(); error != 0) {
    return fail({.code = Errc::io_uring_unavailable, .os_errno = error});
  }
  return ring;
}

Result<std::unique_ptr<Transport>> Ring::another() {
  auto node = node_.duplicate();
  if (!node) return fail(node.error());
  return open(std::move(*node), capacity_, options_)
      .map([](std::unique_ptr<Ring> ring) -> std::unique_ptr<Transport> { return ring; });
}

int Ring::set_up() {
  io_uring_params params{};
  params.sq_thread_idle = sq_thread_idle_ms;
  unsigned flags = IORING_SETUP_SQE128 | IORING_SETUP_CQE32;
  // What is wanted, the youngest first: a kernel that refuses is asked for less.
  struct Feature {
    bool& wanted;
    unsigned flags;
    Fallback fallback;
  };
  // Disabled until its first command, the ring belongs to the thread that sends that one.
  const unsigned deferring = options_.sq_poll ? 0 : IORING_SETUP_DEFER_TASKRUN;
  Feature features[] = {
      {options_.single_issuer, IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_R_DISABLED | deferring,
       Fallback::single_issuer},
      {options_.io_poll, IORING_SETUP_IOPOLL, Fallback::io_poll},
      {options_.sq_poll, IORING_SETUP_SQPOLL, Fallback::sq_poll},
  };
  for (const Feature& feature : features) {
    if (feature.wanted) flags |= feature.flags;
  }
  auto next = std::begin(features);
  for (;;) {
    params.flags = flags;
    const int error = io_uring_queue_init_params(capacity_, &uring_->ring, &params);
    if (error == 0) break;
    while (next != std::end(features) && !next->wanted) ++next;
    if (next == std::end(features) || (error != -EINVAL && error != -EPERM)) return -error;
    flags &= ~next->flags;
    next->wanted = false;
    fallbacks_.set(static_cast<std::size_t>(next->fallback));
  }
  uring_->ready = true;
  enabled_ = !options_.single_issuer;
  const int fd = node_.fd();
  return -io_uring_register_files(&uring_->ring, &fd, 1);
}

int Ring::enable() {
  if (enabled_) return 0;
  // As io_uring_enable_rings, which the shared library of liburing 2.3 declares but does not have.
  if (syscall(SYS_io_uring_register, uring_->ring.ring_fd, IORING_REGISTER_ENABLE_RINGS, nullptr, 0) != 0) {
    return -errno;
  }
  enabled_ = true;
  return 0;
}

bool Ring::register_buffers(std::span<const iovec> buffers) {
  return io_uring_register_buffers(&uring_->ring, buffers.data(),
                                   static_cast<unsigned>(buffers.size())) == 0;
}

Result<void> Ring::submit(const Command& command, std::uint64_t user_data) {
  io_uring_sqe* sqe = io_uring_get_sqe(&uring_->ring);
  if (sqe == nullptr) return fail({.code = Errc::os, .os_errno = EAGAIN});
  std::memset(sqe, 0, 2 * sizeof *sqe);  // an entry of this ring is two of the plain ones
  sqe->opcode = IORING_OP_URING_CMD;
  sqe->fd = 0;  // index of the registered file
  sqe->flags = IOSQE_FIXED_FILE;
  sqe->cmd_op = NVME_URING_CMD_IO;
  sqe->user_data = user_data;
  if (command.fixed_buffer >= 0) {
    sqe->uring_cmd_flags = IORING_URING_CMD_FIXED;
    sqe->buf_index = static_cast<std::uint16_t>(command.fixed_buffer);
  }
  nvme_uring_cmd payload{};
  payload.opcode = static_cast<std::uint8_t>(command.opcode);
  payload.nsid = command.nsid;
  payload.cdw2 = command.cdw2;
  payload.cdw3 = command.cdw3;
  payload.metadata = reinterpret_cast<std::uintptr_t>(command.metadata);
  payload.addr = reinterpret_cast<std::uintptr_t>(command.data);
  payload.metadata_len = command.metadata_len;
  payload.data_len = command.data_len;
  payload.cdw10 = command.cdw10;
  payload.cdw11 = command.cdw11;
  payload.cdw12 = command.cdw12;
  payload.cdw13 = command.cdw13;
  payload.cdw14 = command.cdw14;
  payload.cdw15 = command.cdw15;
  payload.timeout_ms = command.timeout_ms;
  std::memcpy(sqe->cmd, &payload, sizeof payload);
  return {};
}

Result<void> Ring::flush() {
  int sent = enable();
  if (sent >= 0) {
    do {
      sent = io_uring_submit(&uring_->ring);
    } while (sent == -EINTR);
  }
  if (sent < 0) return fail({.code = Errc::os, .os_errno = -sent});
  return {};
}

int Ring::submit_and_wait(std::chrono::milliseconds timeout) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(timeout);
  __kernel_timespec wait_limit{.tv_sec = seconds.count(),
                               .tv_nsec = std::chrono::nanoseconds(timeout - seconds).count()};
  io_uring_cqe* cqe = nullptr;
  return io_uring_submit_and_wait_timeout(&uring_->ring, &cqe, 1, &wait_limit, nullptr);
}

// With IOPOLL the kernel knows no time limit for waiting: it is asked again and again without any wait.
int Ring::submit_and_poll(std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  for (;;) {
    if (io_uring_cq_ready(&uring_->ring) > 0) return io_uring_submit(&uring_->ring);
    const int sent = io_uring_submit_and_get_events(&uring_->ring);
    if (sent < 0 || io_uring_cq_ready(&uring_->ring) > 0) return sent;
    if (std::chrono::steady_clock::now() >= deadline) return -ETIME;
  }
}

Result<std::uint32_t> Ring::reap(std::span<Completion> completions, std::chrono::milliseconds timeout) {
  int waited = enable();
  if (waited >= 0) waited = options_.io_poll ? submit_and_poll(timeout) : submit_and_wait(timeout);
  // EAGAIN and EBUSY: the kernel is short of something and has sent a part at most; the caller comes again.
  const bool passing = waited == -ETIME || waited == -EINTR || waited == -EAGAIN || waited == -EBUSY;
  if (waited < 0 && !passing) {
    return fail({.code = Errc::os, .os_errno = -waited});
  }
  io_uring_cqe* cqe = nullptr;
  std::uint32_t count = 0;
  unsigned head = 0;
  io_uring_for_each_cqe(&uring_->ring, head, cqe) {
    if (count == completions.size()) break;
    completions[count++] = {
        .user_data = cqe->user_data, .result = cqe->res, .dwords = cqe->big_cqe[0]};
  }
  io_uring_cq_advance(&uring_->ring, count);
  return count;
}

}  // namespace nvpi
