#include "nvme/ring.h"

#include <liburing.h>
#include <linux/nvme_ioctl.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace nvpi {

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

Ring::Ring(GenericNode node, std::uint32_t capacity)
    : node_(std::move(node)), capacity_(capacity), uring_(std::make_unique<Uring>()) {}

Ring::~Ring() = default;

Result<std::unique_ptr<Ring>> Ring::open(const std::string& path, std::uint32_t capacity) {
  auto node = GenericNode::open(path);
  if (!node) return fail(node.error());
  std::unique_ptr<Ring> ring(new Ring(std::move(*node), capacity));
  if (const int error = ring->set_up(); error != 0) {
    return fail({.code = Errc::io_uring_unavailable, .os_errno = error});
  }
  return ring;
}

int Ring::set_up() {
  io_uring_params params{};
  params.flags = IORING_SETUP_SQE128 | IORING_SETUP_CQE32;
  if (const int error = io_uring_queue_init_params(capacity_, &uring_->ring, &params); error != 0) {
    return -error;
  }
  uring_->ready = true;
  const int fd = node_.fd();
  return -io_uring_register_files(&uring_->ring, &fd, 1);
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
  int sent = 0;
  do {
    sent = io_uring_submit(&uring_->ring);
  } while (sent == -EINTR);
  if (sent < 0) return fail({.code = Errc::os, .os_errno = -sent});
  return {};
}

Result<std::uint32_t> Ring::reap(std::span<Completion> completions, std::chrono::milliseconds timeout) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(timeout);
  __kernel_timespec wait_limit{.tv_sec = seconds.count(),
                               .tv_nsec = std::chrono::nanoseconds(timeout - seconds).count()};
  io_uring_cqe* cqe = nullptr;
  const int waited = io_uring_submit_and_wait_timeout(&uring_->ring, &cqe, 1, &wait_limit, nullptr);
  // EAGAIN and EBUSY: the kernel is short of something and has sent a part at most; the caller comes again.
  const bool passing = waited == -ETIME || waited == -EINTR || waited == -EAGAIN || waited == -EBUSY;
  if (waited < 0 && !passing) {
    return fail({.code = Errc::os, .os_errno = -waited});
  }
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
