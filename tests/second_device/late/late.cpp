// A second device for torch, under its name for such: PrivateUse1.
//
// Its memory is the host's, and its kernels are the CPU's, below a boxed fallback. What makes it a device is what goes
// wrong on one: tensors of two devices do not mix, float64 is refused if it has none, its memory ends, and it is done
// later than the host: each operator takes it as long again as it took the host, and only waiting lets it catch up.
//
// LATE_CARDS: how many there are. LATE_VISIBLE_CARDS: which of them a process sees. LATE_FLOAT64=1: it has float64.
// LATE_MEMORY: bytes of each. LATE_WAITS=0: a liar, whose synchronisation returns at once. LATE_FORGETS=addmm: one
// that leaves out an operator whose answer lies in a tensor that was given to it.

#include <ATen/EmptyTensor.h>
#include <ATen/autocast_mode.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/resize_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/core/impl/alloc_cpu.h>
#include <torch/csrc/profiler/stubs/base.h>
#include <torch/extension.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <sstream>
#include <thread>
#include <unordered_set>

namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kLate = c10::DeviceType::PrivateUse1;

std::string variable(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? otherwise : value;
}

// ---- cards -------------------------------------------------------------------------------------------------------

struct Card {
  int64_t held = 0, peak = 0, reserved = 0, most_reserved = 0;
  Clock::time_point free_at = Clock::now();
};

int64_t capacity() {
  static const int64_t bytes = std::stoll(variable("LATE_MEMORY", "8589934592"));
  return bytes;
}

bool float64() {
  static const bool has = variable("LATE_FLOAT64", "0") == "1";
  return has;
}

// The cards that this process sees: those of LATE_VISIBLE_CARDS that exist.
c10::DeviceIndex count() {
  static const c10::DeviceIndex visible = [] {
    const int all = std::stoi(variable("LATE_CARDS", "1"));
    std::stringstream words(variable("LATE_VISIBLE_CARDS", ""));
    int seen = 0, named = 0;
    for (std::string word; std::getline(words, word, ','); ++named) {
      seen += std::stoi(word) < all;
    }
    return static_cast<c10::DeviceIndex>(named ? seen : all);
  }();
  return visible;
}

std::mutex mutex;
std::vector<Card>& cards() {
  static std::vector<Card> all(std::max<int>(count(), 1));
  return all;
}

thread_local c10::DeviceIndex current = 0;

void choose(c10::DeviceIndex index) {
  TORCH_CHECK(0 <= index && index < count(), "late: there is no card ", int(index), ", but ", int(count()));
  current = index;
}

void busy(c10::DeviceIndex index, Clock::time_point since) {
  const auto now = Clock::now();
  const std::lock_guard<std::mutex> lock(mutex);
  auto& free_at = cards()[index].free_at;
  free_at = std::max(free_at, since) + 2 * (now - since);
}

Clock::time_point free_at(c10::DeviceIndex index) {
  const std::lock_guard<std::mutex> lock(mutex);
  return cards()[index].free_at;
}

void wait(c10::DeviceIndex index) {
  static const bool waits = variable("LATE_WAITS", "1") == "1";
  if (waits) {
    std::this_thread::sleep_until(free_at(index));
  }
}

// ---- memory ------------------------------------------------------------------------------------------------------

struct Block {
  void* data;
  int64_t size;
  c10::DeviceIndex card;
};

void release(void* context) {
  auto* block = static_cast<Block*>(context);
  {
    const std::lock_guard<std::mutex> lock(mutex);
    cards()[block->card].held -= block->size;
  }
  c10::free_cpu(block->data);
  delete block;
}

struct Memory final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    const auto card = current;
    const auto size = static_cast<int64_t>(bytes);
    {
      const std::lock_guard<std::mutex> lock(mutex);
      auto& all = cards()[card];
      TORCH_CHECK_WITH(
          OutOfMemoryError, all.held + size <= capacity(), "late out of memory. Tried to allocate ", size >> 20, " MiB.");
      all.held += size;
      all.peak = std::max(all.peak, all.held);
      all.reserved = std::max(all.reserved, (all.held + (1 << 21) - 1) >> 21 << 21);
      all.most_reserved = std::max(all.most_reserved, all.reserved);
    }
    auto* block = new Block{c10::alloc_cpu(bytes), size, card};
    return {block->data, block, &release, c10::Device(kLate, card)};
  }
  c10::DeleterFnPtr raw_deleter() const override {
    return nullptr;  // its blocks know more than their address
  }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
} memory;

std::unordered_set<const void*> pinned;

struct PinnedMemory final : c10::Allocator {
  static void unpin(void* data) {
    {
      const std::lock_guard<std::mutex> lock(mutex);
      pinned.erase(data);
    }
    c10::free_cpu(data);
  }
  c10::DataPtr allocate(size_t bytes) override {
    void* data = c10::alloc_cpu(bytes);
    const std::lock_guard<std::mutex> lock(mutex);
    pinned.insert(data);
    return {data, data, &unpin, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override {
    return &unpin;
  }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
} pinned_memory;

// ---- what torch asks of a device ---------------------------------------------------------------------------------

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kLate; }
  c10::Device getDevice() const override { return {kLate, current}; }
  void setDevice(c10::Device device) const override { choose(device.index()); }
  void uncheckedSetDevice(c10::Device device) const noexcept override { current = device.index(); }
  c10::Device exchangeDevice(c10::Device device) const override {
    const auto before = getDevice();
    setDevice(device);
    return before;
  }
  c10::DeviceIndex deviceCount() const noexcept override { return count(); }
  c10::Stream getStream(c10::Device device) const override { return c10::Stream(c10::Stream::DEFAULT, device); }
  c10::Stream getDefaultStream(c10::Device device) const override { return getStream(device); }
  c10::Stream exchangeStream(c10::Stream stream) const override { return getStream(stream.device()); }
  bool queryStream(const c10::Stream& stream) const override { return free_at(stream.device_index()) <= Clock::now(); }
  void synchronizeStream(const c10::Stream& stream) const override { wait(stream.device_index()); }
  void synchronizeDevice(c10::DeviceIndex index) const override { wait(index); }

  // An event is the moment when the queue will be through what it had.
  void record(void** event, const c10::Stream& stream, c10::DeviceIndex, c10::EventFlag) const override {
    delete static_cast<Clock::time_point*>(*event);
    *event = new Clock::time_point(std::max(free_at(stream.device_index()), Clock::now()));
  }
  void block(void*, const c10::Stream&) const override {}  // there is one queue
  bool queryEvent(void* event) const override {
    return event == nullptr || *static_cast<Clock::time_point*>(event) <= Clock::now();
  }
  void synchronizeEvent(void* event) const override {
    if (event != nullptr) {
      std::this_thread::sleep_until(*static_cast<Clock::time_point*>(event));
    }
  }
  double elapsedTime(void* first, void* second, c10::DeviceIndex) const override {
    const auto between = *static_cast<Clock::time_point*>(second) - *static_cast<Clock::time_point*>(first);
    return std::chrono::duration<double, std::milli>(between).count();
  }
  void destroyEvent(void* event, c10::DeviceIndex) const noexcept override {
    delete static_cast<Clock::time_point*>(event);
  }
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return count() > 0; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return count(); }
  c10::DeviceIndex getCurrentDevice() const override { return current; }
  void setCurrentDevice(c10::DeviceIndex index) const override { choose(index); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override {
    const auto before = current;
    choose(index);
    return before;
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override {
    return index < 0 ? current : exchangeDevice(index);
  }
  bool isPinnedPtr(const void* data) const override {
    const std::lock_guard<std::mutex> lock(mutex);
    return pinned.count(data) > 0;
  }
  c10::Allocator* getPinnedMemoryAllocator() const override { return &pinned_memory; }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override {
    auto grown = memory.allocate(bytes);
    std::memcpy(grown.get(), storage.data(), std::min(bytes, storage.nbytes()));
    storage.unsafeGetStorageImpl()->set_data_ptr(std::move(grown));
    storage.unsafeGetStorageImpl()->set_nbytes(bytes);
  }
};

// What the profiler asks around each operator.
struct Stubs final : torch::profiler::impl::ProfilerStubs {
  using Event = torch::profiler::impl::ProfilerVoidEventStub;
  void record(c10::DeviceIndex* device, Event* event, int64_t* nanoseconds) const override {
    if (device != nullptr) {
      *device = current;
    }
    *event = std::make_shared<Clock::time_point>(std::max(free_at(current), Clock::now()));
    if (nanoseconds != nullptr) {
      *nanoseconds = std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count();
    }
  }
  float elapsed(const Event* first, const Event* second) const override {
    const auto between = *static_cast<Clock::time_point*>(second->get()) - *static_cast<Clock::time_point*>(first->get());
    return std::chrono::duration<float, std::micro>(between).count();
  }
  void mark(const char*) const override {}
  void rangePush(const char*) const override {}
  void rangePop() const override {}
  bool enabled() const override { return true; }
  void onEachDevice(std::function<void(int)> visit) const override {
    for (int index = 0; index < count(); ++index) {
      visit(index);
    }
  }
  void synchronize() const override { wait(current); }
};

// ---- tensors -----------------------------------------------------------------------------------------------------

void refuse(at::ScalarType dtype) {
  const bool wide = dtype == at::kDouble || dtype == at::kComplexDouble;
  TORCH_CHECK(!wide || float64(), "Required aspect fp64 is not supported on the device");
}

at::Tensor empty(
    at::IntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
    std::optional<at::Device> device, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  const c10::OptionalDeviceGuard guard(device);
  const auto kind = c10::dtype_or_default(dtype);
  refuse(kind);
  return at::detail::empty_generic(size, &memory, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), kind, format);
}

at::Tensor empty_strided(
    at::IntArrayRef size, at::IntArrayRef stride, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
    std::optional<at::Device> device, std::optional<bool>) {
  const c10::OptionalDeviceGuard guard(device);
  const auto kind = c10::dtype_or_default(dtype);
  refuse(kind);
  return at::detail::empty_strided_generic(
      size, stride, &memory, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), kind);
}

// The same memory, as a tensor of the host.
at::Tensor on_host(const at::Tensor& tensor) {
  if (!tensor.is_privateuseone()) {
    return tensor;
  }
  const auto& storage = tensor.storage();
  const c10::Storage same(
      c10::Storage::use_byte_size_t(), storage.nbytes(),
      c10::DataPtr(const_cast<void*>(storage.data()), c10::Device(c10::kCPU)), c10::GetAllocator(c10::kCPU), true);
  auto host = at::detail::empty_cpu({0}, tensor.scalar_type());
  auto made = at::Tensor(host);
  made.set_(same, tensor.storage_offset(), tensor.sizes(), tensor.strides());
  return made;
}

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
  const auto begin = Clock::now();
  const auto card = (to.is_privateuseone() ? to : from).device().index();
  on_host(to).copy_(on_host(from));
  busy(card, begin);
  const bool queued = to.is_privateuseone() && (from.is_privateuseone() || (non_blocking && from.is_pinned()));
  if (!queued) {
    wait(card);
  }
  return to;
}

at::Tensor copy_from_and_resize(const at::Tensor& from, const at::Tensor& to) {
  to.resize_(from.sizes());
  return copy_from(from, to, false);
}

at::Scalar local_scalar_dense(const at::Tensor& tensor) {
  wait(tensor.device().index());
  return on_host(tensor).item();
}

// ---- operators ---------------------------------------------------------------------------------------------------

// The tensors of one call, as those of the host, and the way back.
struct Call {
  std::vector<std::pair<at::Tensor, at::Tensor>> ours;  // of the device, and of the host
  c10::Device device{kLate, current};
  bool foreign = false;  // whether a tensor with dimensions is the host's

  at::Tensor there(const at::Tensor& tensor) {
    if (!tensor.defined() || !tensor.is_privateuseone()) {
      foreign |= tensor.defined() && tensor.dim() > 0 && tensor.is_cpu();
      return tensor;
    }
    device = tensor.device();
    ours.emplace_back(tensor, on_host(tensor));
    return ours.back().second;
  }

  at::Tensor back(const at::Tensor& host) const {
    if (!host.defined() || !host.is_cpu()) {
      return host;
    }
    for (const auto& [tensor, same] : ours) {
      if (same.is_same(host)) {
        return tensor;
      }
    }
    for (const auto& [tensor, same] : ours) {  // a view
      if (host.has_storage() && same.storage().is_alias_of(host.storage()) && host.numel()) {
        auto view = at::empty({0}, tensor.options().dtype(host.scalar_type()));
        return view.set_(tensor.storage(), host.storage_offset(), host.sizes(), host.strides());
      }
    }
    refuse(host.scalar_type());
    auto made = at::empty_strided(host.sizes(), host.strides(), host.options().device(device));
    std::memcpy(made.storage().mutable_data(), host.storage().data(), std::min(made.storage().nbytes(), host.storage().nbytes()));
    return made;
  }

  // Tensors that were given as a place for the answer may have grown.
  void grown() const {
    for (const auto& [tensor, same] : ours) {
      if (tensor.sizes() != same.sizes()) {
        tensor.resize_(same.sizes());
        on_host(tensor).copy_(same);
      }
    }
  }
};

// The same value with other tensors, wherever an operator can have them.
template <typename Change>
c10::IValue mapped(const c10::IValue& value, Change change) {
  if (value.isTensor()) {
    return change(value.toTensor());
  }
  if (value.isTensorList()) {
    c10::List<at::Tensor> tensors;
    for (const at::Tensor& tensor : value.toTensorVector()) {
      tensors.push_back(change(tensor));
    }
    return tensors;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> tensors;
    for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector()) {
      tensors.push_back(tensor ? std::optional<at::Tensor>(change(*tensor)) : std::nullopt);
    }
    return tensors;
  }
  return value;
}

c10::IValue there(Call& call, const c10::IValue& value) {
  if (value.isDevice() && value.toDevice().type() == kLate) {
    call.device = value.toDevice().has_index() ? value.toDevice() : c10::Device(kLate, current);
    return c10::Device(c10::kCPU);
  }
  return mapped(value, [&](const at::Tensor& tensor) { return call.there(tensor); });
}

void run(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const at::AutoDispatchBelowADInplaceOrView below;
  const auto begin = Clock::now();
  Call call;
  const auto arguments = op.schema().arguments().size();
  for (auto value = stack->end() - arguments; value != stack->end(); ++value) {
    *value = there(call, *value);
  }
  const std::string name = op.operator_name().name;
  TORCH_CHECK(
      !call.foreign || call.ours.empty() || name.find("index") != std::string::npos,  // which torch lets be anywhere
      "Expected all tensors to be on the same device, but found at least two devices, ", call.device, " and cpu!");
  static const std::string forgotten = variable("LATE_FORGETS", "");
  if (forgotten.empty() || name != "aten::" + forgotten) {
    op.callBoxed(stack);
  } else {
    stack->erase(stack->end() - arguments, stack->end() - 1);  // what is left is the place for the answer
  }
  call.grown();
  const auto returns = op.schema().returns().size();
  for (auto value = stack->end() - returns; value != stack->end(); ++value) {
    *value = mapped(*value, [&](const at::Tensor& tensor) { return call.back(tensor); });
  }
  busy(call.device.index(), begin);
}

// For devices of others torch has an operator of its own, with the same arguments.
void convolution(const c10::OperatorHandle&, torch::jit::Stack* stack) {
  static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("aten::convolution", "");
  run(op, stack);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> convolution_backward(
    const at::Tensor& gradient, const at::Tensor& input, const at::Tensor& weight, at::IntArrayRef stride,
    at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed, at::IntArrayRef output_padding, int64_t groups,
    std::array<bool, 3> mask) {
  static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("aten::convolution_backward", "");
  const std::vector<int64_t> bias{transposed ? weight.size(1) * groups : weight.size(0)};
  torch::jit::Stack stack;
  torch::jit::push(
      stack, gradient, input, weight, c10::IValue(bias), stride, padding, dilation, transposed, output_padding, groups,
      std::vector<bool>(mask.begin(), mask.end()));
  run(op, &stack);
  return {stack[0].toTensor(), stack[1].toTensor(), stack[2].toTensor()};
}

}  // namespace

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&run>());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", &empty);
  m.impl("empty_strided", &empty_strided);
  m.impl("as_strided", &at::native::as_strided_tensorimpl);
  m.impl("view", &at::native::view);
  m.impl("_reshape_alias", &at::native::_reshape_alias);
  m.impl("unfold", &at::native::unfold);
  m.impl("resize_", &at::native::resize_);
  m.impl("set_.source_Storage_storage_offset", &at::native::set_storage_cpu_);
  m.impl("set_.source_Storage", &at::native::set_);
  m.impl("set_.source_Tensor", &at::native::set_tensor_);
  m.impl("_copy_from", &copy_from);
  m.impl("_copy_from_and_resize", &copy_from_and_resize);
  m.impl("_local_scalar_dense", &local_scalar_dense);
  m.impl("convolution_overrideable", torch::CppFunction::makeFromBoxedFunction<&convolution>());
  m.impl("convolution_backward_overrideable", &convolution_backward);
}

// What has no gradient of its own, such as a collective, needs none.
TORCH_LIBRARY_IMPL(_, AutogradPrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFallthrough());
}

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFallthrough());
}

#define LOWER(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define WIDER(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define WIDER_DTYPE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define PROMOTED(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
  using namespace at::autocast;
  AT_FORALL_LOWER_PRECISION_FP(LOWER)
  AT_FORALL_FP32(WIDER)
  AT_FORALL_FP32_SET_OPT_DTYPE(WIDER_DTYPE)
  AT_FORALL_PROMOTE(PROMOTED)
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  at::SetAllocator(kLate, &memory);
  at::RegisterPrivateUse1HooksInterface(new Hooks());
  torch::profiler::impl::registerPrivateUse1Methods(new Stubs());
  m.def("count", [] { return int(count()); });
  m.def("current", [] { return int(current); });
  m.def("choose", [](int index) { choose(static_cast<c10::DeviceIndex>(index)); });
  m.def("wait", [](int index) { wait(static_cast<c10::DeviceIndex>(index)); }, py::call_guard<py::gil_scoped_release>());
  m.def("float64", &float64);
  m.def("capacity", &capacity);
  m.def("held", [](int index) { return cards()[index].held; });
  m.def("peak", [](int index) { return cards()[index].peak; });
  m.def("reserved", [](int index) { return cards()[index].most_reserved; });
  m.def("reset_peak", [](int index) {
    auto& card = cards()[index];
    card.peak = card.held;
    card.most_reserved = card.reserved;
  });
}
