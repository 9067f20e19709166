"""One sentence for each cause, in the user's own names, and the habit that prevents it.

Placeholders: {stray} and {other} with their {device} and {target}, {origin} the line
where it was made, {where} its place, {owner} the object that holds it, {kind} that
object's class, {attribute} the name it has there.
"""

from __future__ import annotations

from ipydevice.language import Sentence

EXPLANATIONS: dict[str, Sentence] = {
    "input_not_moved": "{stray} comes from `{origin}` ({where}) and nothing on its way moves it to {target}",
    "label_not_moved": "{stray} comes from `{origin}` ({where}) and is never moved to {target}, where {other} is",
    "fresh_tensor_no_device": "`{origin}` ({where}) makes a new tensor without device=, so it lands on {device}",
    "model_not_moved": "{stray} was made in `{origin}` ({where}) and never moved to {target}",
    "plain_tensor_attribute": "{owner} keeps it as plain attribute `{attribute}` (`{origin}`, {where}); "
    "only parameters and buffers follow .to()",
    "module_in_plain_container": "{owner} keeps its modules in a plain Python container (`{origin}`, {where}); "
    ".to() and parameters() do not see them",
    "module_built_in_forward": "`{origin}` ({where}) builds a new module on every call: on {device}, untrained and "
    "unknown to .to()",
    "module_added_after_move": "{stray} was put into the model after the model had been moved (`{origin}`, {where})",
    "framework_moved_model": "{stray} was handed to a trainer (`{origin}`, {where}), which left it on {device}",
    "loss_weight": "the criterion holds {stray} as a tensor of its own, and the criterion was never moved "
    "(`{origin}`, {where})",
    "metric_state": "the metric keeps its state in {stray}, and the metric was never moved (`{origin}`, {where})",
    "ema_shadow": "{stray} is an averaged or shadow copy that stayed on {device} (`{origin}`, {where})",
    "optimizer_state": "optimizer state stays where it was made or loaded: {stray} is on {device}, "
    "its parameter on {target} (`{origin}`, {where})",
    "rnn_state": "the hidden state {stray} was made or kept on {device} (`{origin}`, {where})",
    "stale_cache": "{stray} was kept from a call when everything was on {device} (`{origin}`, {where}), "
    "and is used again now",
    "derived_tensor_in_init": "{attribute} was computed from parameters once (`{origin}`, {where}); it does not follow "
    "them when they move",
    "closure_constant": "{stray} was caught by a nested function, from `{origin}` ({where}); moving the model does not "
    "move it",
    "checkpoint_location": "{stray} was loaded (`{origin}`, {where}) and stays where the load put it: on {device}",
    "hardcoded_device": "`{origin}` ({where}) names its device in the code; here everything else is on {target}",
    "to_result_discarded": "`.to()` does not move a tensor in place, it returns a new one; the result is thrown away "
    "(`{origin}`, {where})",
    "default_device_global": "a global default device decides where `{origin}` ({where}) puts its tensors",
    "model_split_multi_gpu": "parts of the model are on different cards, and {stray} crosses from {device} to {target} "
    "without being moved",
    "nested_batch_partly_moved": "some members of the batch were moved to {target}, {stray} was left behind "
    "(`{origin}`, {where})",
    "stray_in_collection": "all tensors of a cat or stack must be on one device; {stray} is the one on {device} "
    "(`{origin}`, {where})",
    "index_device": "an index or mask must be on the host or with the tensor that it selects from; {stray} is on "
    "{device} (`{origin}`, {where})",
    "library_returns_cpu": "`{origin}` ({where}) computes on the host and returns a host tensor",
    "to_numpy": "NumPy works on host memory only, and {stray} is on {device}",
    "must_be_cpu": "this argument has to be on the host by rule, and {stray} is on {device}",
    "generator_device": "a random generator works for one device only: {stray} is for {device}, the numbers are wanted "
    "on {target}",
    "cuda_in_dataset": "a Dataset or collate function makes accelerator tensors; batches are put together on the host",
    "dp_replica_state": "DataParallel copies parameters and buffers to each card; {stray} is neither, so every replica "
    "uses the first card's",
    "meta_not_materialized": "{stray} is on meta: it has a shape and no data, its weights were never loaded "
    "(`{origin}`, {where})",
    "no_accelerator": "the code asks for a device that this machine or this build of PyTorch does not have",
    "ddp_wrong_device": "{stray} is on {device} (`{origin}`, {where}), and the card of this process, by its "
    "rank, is {target}",
    "traced_constant": "the graph of {stray} was recorded on {device} (`{origin}`, {where}), and what was a constant "
    "there stays so when the module is moved",
    "unknown": "{stray} is on {device} and meets {other} on {target}",
}

# The same causes where more is known.
VARIANTS: dict[str, Sentence] = {
    "origin_not_shown": "the lines shown do not tell where {stray} was made; nothing in them moves it to {target}",
    "attribute_of_no_module": "{owner} keeps it as `{attribute}` (`{origin}`, {where}) and is no nn.Module, so "
    "moving models does not move it",
    "bound_to_the_first_replica": "{stray} is read by a method that belongs to the first card's module, as a hook or a "
    "stored method does; the replica on the other card has a copy of its own that it does not see",
    "no_such_name": 'PyTorch knows no device of this name; cards are "cuda" or "cuda:0", those of AMD as well',
    "dp_in_a_process": "DataParallel spreads over all cards, {target} first; {stray} is on {device}, the one that this "
    "process has by its rank",
    "moved_away": "{stray} was last moved by `{origin}` ({where}), to {device}",
}

HABITS: dict[str, Sentence] = {
    "input_not_moved": "Move the whole batch in one place, first thing in the loop.",
    "label_not_moved": "Move inputs and labels together, first thing in the loop.",
    "fresh_tensor_no_device": "Make tensors where their neighbours are: device=x.device, or torch.zeros_like(x).",
    "model_not_moved": "Move a module in the line that makes it: Net().to(device).",
    "plain_tensor_attribute": "Constants of a module belong into register_buffer.",
    "module_in_plain_container": "Use nn.ModuleList and nn.ModuleDict for modules.",
    "module_built_in_forward": "Build modules in __init__ and only use them in forward.",
    "module_added_after_move": "Move the model once more after changing its layers.",
    "framework_moved_model": "After a trainer has had the model, move it to where you want it.",
    "loss_weight": "A criterion with weights is a module: move it like one.",
    "metric_state": "Move metrics like modules.",
    "ema_shadow": "Make averaged copies after the model has been moved.",
    "optimizer_state": "Move the model first, then build the optimizer or load its state.",
    "rnn_state": "Make the hidden state from the input: x.new_zeros(...).",
    "stale_cache": "Put the device into the key of a cache, or use a buffer.",
    "derived_tensor_in_init": "Compute from parameters when needed, or register a buffer.",
    "closure_constant": "Catch tensors in hooks and lambdas only after they have been moved.",
    "checkpoint_location": "Load with map_location and move what you keep.",
    "hardcoded_device": "Take the device from a neighbour, x.device, not from a constant.",
    "to_result_discarded": "Write x = x.to(device); only modules move in place.",
    "default_device_global": "Pass device= instead of changing the global default.",
    "model_split_multi_gpu": "Move activations at the seam, to the next part's device.",
    "nested_batch_partly_moved": "Move batches recursively.",
    "stray_in_collection": "Check devices where the list is filled.",
    "index_device": "Make indices on the device of what they index.",
    "library_returns_cpu": "Move the results of host libraries where they come in.",
    "to_numpy": "Keep numbers, not tensors: loss.item(), x.detach().cpu().",
    "must_be_cpu": "Keep lengths on the host.",
    "generator_device": "torch.Generator(device=device)",
    "cuda_in_dataset": "Datasets give host tensors; the loop moves them.",
    "dp_replica_state": "Register tensors as buffers, so that replicas get their own.",
    "meta_not_materialized": "Load every part of a model that was made on meta.",
    "ddp_wrong_device": "First line of every process: torch.cuda.set_device(local_rank).",
    "traced_constant": "Make constants on an input's device; trace on the device where it will run.",
    "no_accelerator": 'device = torch.device("cuda" if torch.cuda.is_available() else "cpu")',
}
