"""Operations whose numbers must be those of a plain CPU run: functions of (device, other device) -> tensors."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import clip_grad_norm_
from torch.nn.utils.rnn import pack_padded_sequence, pack_sequence, pad_packed_sequence

Operation = Callable[[str, str], Any]
OPERATIONS: dict[str, Operation] = {}


def operation(function: Operation) -> Operation:
    OPERATIONS[function.__name__] = function
    return function


def draw(*shape: int, device: str) -> torch.Tensor:
    return torch.randn(*shape).to(device)  # drawn on the host: a real card would draw other numbers


@operation
def factories(d: str, e: str) -> Any:
    x = torch.zeros(2, 3, device=d)
    return [
        x,
        torch.ones(3, device=torch.device(d)),
        torch.full((2,), 7.0, device=d),
        torch.arange(5, device=d),
        torch.linspace(0, 1, 4, device=d),
        torch.eye(3, device=d),
        torch.tensor([1.0, 2.0], device=d),
        torch.as_tensor([1, 2], device=d),
        torch.asarray([1, 2], device=d),
        torch.rand(3, device=d),
        torch.randn(3, device=d, requires_grad=True),
        torch.randint(0, 9, (4,), device=d),
        torch.randperm(6, device=d),
        torch.hann_window(5, device=d),
        torch.tril_indices(3, 3, device=d),
        torch.zeros_like(x),
        torch.rand_like(x),
        torch.full_like(x, 2),
        x.new_zeros(2),
        x.new_ones(2),
        x.new_full((2,), 3.0),
        x.new_tensor([1.0, 2.0]),
        x.new_empty(2).fill_(1),
        torch.normal(torch.zeros(3, device=d), 1.0),
        torch.empty(3, device=d).uniform_(),
        torch.fft.fftfreq(5, device=d),
        torch.logspace(0, 1, 3, device=d),
    ]


@operation
def moves(d: str, e: str) -> Any:
    x = draw(2, 3, device="cpu")
    y = x.to(d)
    return [
        y,
        y.to(d, torch.float64),
        y.to(torch.float16),
        y.to(y),
        x.to(device=d, dtype=torch.float64, non_blocking=True),
        x.t().to(d),
        x.to(d, copy=True),
        y.to(e).to(d),
        x.type_as(y),
        y.double().float(),
        y.clone().detach(),
        torch.as_tensor(x, device=d),
        torch.tensor(y.tolist(), device=d),
    ]


@operation
def views_share_memory(d: str, e: str) -> Any:
    x = torch.arange(12.0, device=d)
    y = x.view(3, 4)
    y[1] = 0
    x.narrow(0, 0, 2).mul_(5)
    y.t()[0, 0] = 9
    parts = x.chunk(3)
    parts[2].add_(1)
    z = x.as_strided((2, 2), (1, 2))
    return [x, y, z, y.expand(2, 3, 4), x.unfold(0, 3, 2), y.permute(1, 0).contiguous(), y.flatten(), x.reshape(2, 6)]


@operation
def in_place(d: str, e: str) -> Any:
    x = draw(4, device=d)
    x += 1
    x *= torch.tensor(2.0)
    x.clamp_(min=0).sqrt_()
    x[0] = 3
    y = torch.zeros(4)
    y.copy_(x)
    z = torch.zeros(4, device=d)
    z.copy_(torch.ones(4))
    z[1:3] = torch.ones(2) * 4
    return [x, y.to(d), z, x.zero_()]


@operation
def indexing(d: str, e: str) -> Any:
    x = draw(4, 5, device=d)
    i = torch.tensor([0, 2], device=d)
    mask = x > 0
    y = x.clone()
    y[mask] = 0
    y[i] = x[i] * 2
    y[torch.tensor([1, 3])] = 1.5
    return [
        x[i],
        x[:, i],
        x[mask],
        x[torch.tensor([1])],
        x[mask.cpu()],
        x[1, ..., None],
        y,
        x.index_select(1, i),
        x.masked_fill(mask, -1),
        x.masked_select(mask),
        torch.where(mask, x, torch.zeros((), device=d)),
        torch.where(mask, 1.0, x),
        mask.nonzero(),
        x.take(torch.tensor([0, 7], device=d)),
        x.index_add(0, i, torch.ones(2, 5, device=d)),
    ]


@operation
def gather_scatter(d: str, e: str) -> Any:
    x = draw(3, 4, device=d)
    i = torch.tensor([[0, 1], [2, 0], [1, 2]], device=d)
    return [
        x.gather(1, i),
        torch.zeros(3, 4, device=d).scatter(1, i, 5.0),
        torch.zeros(3, 4, device=d).scatter_add_(1, i, torch.ones(3, 2, device=d)),
        torch.zeros(3, 4, device=d).scatter_reduce_(1, i, x[:, :2].contiguous(), "amax"),
        F.one_hot(i, 5),
        torch.bincount(i.flatten()),
        x.topk(2).values,
        x.sort(descending=True).indices,
        torch.unique(i),
    ]


@operation
def joining(d: str, e: str) -> Any:
    x, y = draw(2, 3, device=d), draw(2, 3, device=d)
    return [
        torch.cat([x, y]),
        torch.stack([x, y], 1),
        torch.vstack([x, y]),
        torch.hstack([x, y]),
        torch.cartesian_prod(x[0], y[0]),
        *torch.meshgrid(x[0], y[0], indexing="ij"),
        torch.block_diag(x, y),
        F.pad(x, (1, 1)),
        torch.tile(x, (2, 2)),
        nn.utils.rnn.pad_sequence([x[0], y[0, :2]], batch_first=True),
    ]


@operation
def linear_algebra(d: str, e: str) -> Any:
    a, b = draw(3, 4, device=d), draw(4, 5, device=d)
    s = a @ a.t() + 3 * torch.eye(3, device=d)
    return [
        a @ b,
        torch.einsum("ij,jk->ik", a, b),
        torch.bmm(a[None], b[None]),
        a.mv(b[:, 0]),
        torch.dot(a[0], a[1]),
        torch.outer(a[0], b[0]),
        F.linear(a, b.t(), torch.ones(5, device=d)),
        torch.linalg.inv(s),
        torch.linalg.solve(s, a),
        torch.linalg.cholesky(s),
        torch.linalg.svdvals(a),
        torch.cdist(a, a),
        a.norm(),
        torch.addmm(torch.ones(5, device=d), a, b),
        F.bilinear(a, a, draw(2, 4, 4, device=d)),
    ]


@operation
def convolutions(d: str, e: str) -> Any:
    x = draw(2, 3, 8, 8, device=d)
    return [
        nn.Conv2d(3, 4, 3).to(d)(x),
        nn.ConvTranspose2d(3, 4, 3).to(d)(x),
        nn.Conv1d(3, 4, 3).to(d)(x[:, :, 0]),
        nn.Conv3d(3, 2, 3).to(d)(draw(1, 3, 5, 5, 5, device=d)),
        F.max_pool2d(x, 2),
        F.avg_pool2d(x, 2),
        nn.AdaptiveAvgPool2d(1).to(d)(x),
        F.interpolate(x, scale_factor=2, mode="bilinear"),
        F.unfold(x, 3),
        nn.PixelShuffle(1)(x),
        F.grid_sample(x, torch.zeros(2, 4, 4, 2, device=d), align_corners=False),
    ]


@operation
def normalisation(d: str, e: str) -> Any:
    x = draw(4, 6, 5, device=d)
    norm = nn.BatchNorm1d(6).to(d)
    trained = norm(x)
    return [
        trained,
        norm.running_mean,
        norm.num_batches_tracked,
        norm.eval()(x),
        nn.LayerNorm(5).to(d)(x),
        nn.GroupNorm(2, 6).to(d)(x),
        nn.InstanceNorm1d(6).to(d)(x),
        nn.RMSNorm(5).to(d)(x),
        F.normalize(x, dim=-1),
        F.dropout(x, 0.5),
        nn.utils.parametrizations.weight_norm(nn.Linear(5, 2)).to(d)(x),
        nn.utils.parametrizations.spectral_norm(nn.Linear(5, 2)).to(d)(x),
    ]


@operation
def lazy_modules(d: str, e: str) -> Any:
    model = nn.Sequential(nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d(), nn.Flatten(), nn.LazyLinear(2)).to(d)
    return [model(draw(2, 3, 6, 6, device=d)), *model.state_dict().values()]


@operation
def embeddings(d: str, e: str) -> Any:
    ids = torch.tensor([[1, 2], [3, 0]], device=d)
    return [
        nn.Embedding(5, 3, padding_idx=0).to(d)(ids),
        nn.EmbeddingBag(5, 3).to(d)(ids),
        nn.EmbeddingBag(5, 3, mode="sum").to(d)(ids.flatten(), torch.tensor([0, 2], device=d)),
    ]


@operation
def recurrent(d: str, e: str) -> Any:
    x = draw(2, 5, 3, device=d)
    lstm = nn.LSTM(3, 4, num_layers=2, batch_first=True, dropout=0.3, bidirectional=True).to(d)
    out, (h, c) = lstm(x)
    packed = pack_padded_sequence(x, [5, 3], batch_first=True)
    gru = nn.GRU(3, 4, batch_first=True).to(d)
    packed_out, hn = gru(packed)
    padded, lengths = pad_packed_sequence(packed_out, batch_first=True)
    unsorted = pack_padded_sequence(x, torch.tensor([3, 5]), batch_first=True, enforce_sorted=False)
    listed = pack_sequence([x[0], x[1, :2]])
    cell = nn.LSTMCell(3, 4).to(d)
    step = nn.GRUCell(3, 4).to(d)
    padded.sum().backward()
    return [
        *(out, h, c, hn, padded, packed_out.data),
        lengths.to(d),
        pad_packed_sequence(gru(unsorted)[0], batch_first=True)[0],
        listed.data,
        *cell(x[:, 0]),
        step(x[:, 0]),
        nn.RNN(3, 4).to(d)(x)[0],
        nn.RNNCell(3, 4).to(d)(x[:, 0]),
        *[p.grad for p in gru.parameters()],
    ]


@operation
def attention(d: str, e: str) -> Any:
    x = draw(2, 5, 8, device=d)
    mask = torch.triu(torch.ones(5, 5, device=d, dtype=torch.bool), 1)
    heads = nn.MultiheadAttention(8, 2, batch_first=True).to(d)
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).to(d)
    whole = nn.Transformer(8, 2, 1, 1, 16, batch_first=True).to(d)
    causal = nn.Transformer.generate_square_subsequent_mask(5, device=d)
    with torch.no_grad():
        fast = layer.eval()(x)
    return [
        F.scaled_dot_product_attention(x[:, None], x[:, None], x[:, None], is_causal=True),
        F.scaled_dot_product_attention(x[:, None], x[:, None], x[:, None], attn_mask=~mask),
        *heads(x, x, x, attn_mask=mask),
        layer.train()(x, src_mask=causal),
        fast,
        whole(x, x, tgt_mask=causal),
    ]


@operation
def losses(d: str, e: str) -> Any:
    logits = draw(4, 3, device=d)
    labels = torch.tensor([0, 1, 2, 1], device=d)
    target = torch.rand(4, 3, device=d)
    weight = torch.tensor([1.0, 2.0, 3.0], device=d)
    log_probs = draw(6, 2, 4, device=d).log_softmax(-1)
    words = torch.tensor([[1, 2], [3, 1]], device=d)
    return [
        F.cross_entropy(logits, labels, weight=weight),
        nn.CrossEntropyLoss(label_smoothing=0.1)(logits, labels),
        F.cross_entropy(logits, target),
        F.nll_loss(logits.log_softmax(1), labels),
        F.mse_loss(logits, target),
        F.l1_loss(logits, target),
        F.smooth_l1_loss(logits, target),
        F.huber_loss(logits, target),
        F.binary_cross_entropy(logits.sigmoid(), target, weight=weight),
        nn.BCEWithLogitsLoss(pos_weight=weight).to(d)(logits, target),
        F.kl_div(logits.log_softmax(1), target.softmax(1), reduction="batchmean"),
        F.triplet_margin_loss(logits, target, target.flip(0)),
        F.cosine_embedding_loss(logits, target, torch.ones(4, device=d)),
        F.margin_ranking_loss(logits[:, 0], target[:, 0], torch.ones(4, device=d)),
        F.hinge_embedding_loss(logits, torch.ones(4, 3, device=d)),
        F.multilabel_soft_margin_loss(logits, target.round()),
        F.multi_margin_loss(logits, labels),
        F.gaussian_nll_loss(logits, target, torch.ones(4, 3, device=d)),
        F.poisson_nll_loss(logits, target),
        F.ctc_loss(log_probs, words, torch.tensor([6, 6]), torch.tensor([2, 2])),
        F.ctc_loss(log_probs, words, torch.tensor([6, 6], device=d), torch.tensor([2, 2], device=d)),
        F.ctc_loss(log_probs, words, (6, 6), (2, 2)),
    ]


@operation
def elementwise_and_reductions(d: str, e: str) -> Any:
    x = draw(3, 4, device=d)
    return [
        *(x.exp(), x.abs().log(), x.sigmoid(), x.tanh(), F.gelu(x), F.silu(x), F.softplus(x), x.softmax(-1)),
        *(x.sum(), x.mean(0), x.std(1), x.max(1).values, x.argmax(), x.cumsum(1), x.prod(), x.logsumexp(0), x.median()),
        x + 1,
        2 - x,
        x / torch.tensor(2.0),
        torch.maximum(x, torch.zeros((), device=d)),
        torch.quantile(x, 0.5),
        torch.histc(x, 4),
        torch.fft.rfft(x).abs(),
        torch.stft(x.flatten(), 8, window=torch.hann_window(8, device=d), return_complex=True).real,
        torch.complex(x, x).angle(),
        x.round().long() % 3,
        torch.isnan(x).any(),
        torch.bucketize(x, torch.tensor([-1.0, 0.0, 1.0], device=d)),
    ]


@operation
def random_streams(d: str, e: str) -> Any:
    g = torch.Generator(device=d).manual_seed(3)
    a = torch.randn(3, device=d, generator=g)
    b = torch.empty(3, device=d).normal_(generator=g)
    state = g.get_state()
    c = torch.randperm(4, device=d, generator=g)
    g.set_state(state)
    return [
        *(a, b, c, torch.randperm(4, device=d, generator=g)),
        torch.multinomial(torch.ones(4, device=d), 2, generator=g),
        torch.bernoulli(torch.full((4,), 0.5, device=d)),
        F.dropout(torch.ones(5, device=d)),
        F.gumbel_softmax(torch.ones(2, 3, device=d)),
        torch.distributions.Normal(torch.zeros(2, device=d), 1.0).rsample(),
        torch.distributions.Categorical(torch.ones(4, device=d)).sample((3,)),
        torch.poisson(torch.ones(3, device=d)),
    ]


@operation
def gradients(d: str, e: str) -> Any:
    x = draw(3, 3, device=d).requires_grad_()
    w = draw(3, 3, device="cpu").requires_grad_()
    y = (x @ w.to(d)).tanh().to(e).exp().to(d).sum()
    y.backward()
    (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    (gg,) = torch.autograd.grad(g.sum(), x)
    z = (w.to(d) * x).sum()
    (gw,) = torch.autograd.grad(z, w, create_graph=True)
    (gx,) = torch.autograd.grad((gw * torch.ones_like(w)).sum(), x)
    seen: list[torch.Tensor] = []
    h = x * 2
    h.register_hook(lambda grad: seen.append(grad) or grad * 3)
    h.sum().backward()
    assert w.grad is not None
    assert w.grad.device == torch.device("cpu")
    return [y, x.grad, w.grad.to(d), gg, gx, *seen]


@operation
def checkpointing(d: str, e: str) -> Any:
    model = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.5), nn.Tanh(), nn.Linear(8, 1)).to(d)
    x = draw(4, 3, device=d).requires_grad_()
    for reentrant in (True, False):
        torch.utils.checkpoint.checkpoint(model, x, use_reentrant=reentrant).sum().backward()
    return [x.grad, *[p.grad for p in model.parameters()]]


class _Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, scale: float, y: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x, y)
        return x**3 * scale + y.to(x.device)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        x, y = ctx.saved_tensors
        return grad * 3 * x**2, None, grad.to(y.device)


@operation
def custom_functions(d: str, e: str) -> Any:
    x = draw(3, device=d).requires_grad_()
    y = draw(3, device="cpu").requires_grad_()
    _Cube.apply(x, 2.0, y).sum().backward()
    assert y.grad is not None
    return [x.grad, y.grad.to(d)]


def _train(d: str, make: Callable[[Any], torch.optim.Optimizer], steps: int = 4) -> list[torch.Tensor]:
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).to(d)
    optimizer = make(model.parameters())
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
    x, y = draw(6, 4, device=d), torch.randint(0, 2, (6,), device=d)
    found = []

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        clip_grad_norm_(model.parameters(), 1.0)
        return loss

    for _ in range(steps):
        found.append(optimizer.step(closure).detach())  # type: ignore[arg-type, union-attr]
        scheduler.step()
    return [*found, *[p.detach() for p in model.parameters()]]


@operation
def optimizers(d: str, e: str) -> Any:
    # the same loop on both: cards default to foreach, the host to one tensor at a time
    options: dict[str, Any] = {"foreach": True}
    return [
        *_train(d, lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, nesterov=True, **options)),
        *_train(d, lambda p: torch.optim.Adam(p, 0.01, amsgrad=True, **options)),
        *_train(d, lambda p: torch.optim.AdamW(p, 0.01, **options)),
        *_train(d, lambda p: torch.optim.Adam(p, 0.01, foreach=False)),
        *_train(d, lambda p: torch.optim.RMSprop(p, 0.01, **options)),
        *_train(d, lambda p: torch.optim.Adagrad(p, 0.01, **options)),
        *_train(d, lambda p: torch.optim.LBFGS(p, 0.1, max_iter=3), 2),
    ]


@operation
def mixed_precision(d: str, e: str) -> Any:
    kind = torch.device(d).type
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)).to(d)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    scaler = torch.amp.GradScaler(kind)
    found = []
    for _ in range(3):
        with torch.autocast(kind, dtype=torch.bfloat16):
            out = model(draw(5, 4, device=d))
            assert out.dtype is torch.bfloat16
            loss = out.float().pow(2).mean()
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        found.append(loss.detach())
    return [*found, *[p.detach() for p in model.parameters()], torch.tensor(scaler.get_scale(), device=d)]


@operation
def averaging_and_copies(d: str, e: str) -> Any:
    model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)).to(d)
    average = torch.optim.swa_utils.AveragedModel(model)
    twin = copy.deepcopy(model)
    with torch.no_grad():
        for p in model.parameters():
            p.add_(1)
    average.update_parameters(model)
    twin.load_state_dict(average.module.state_dict())
    return [*average.module.state_dict().values(), *twin.state_dict().values(), *model.state_dict().values()]


@operation
def model_parallel(d: str, e: str) -> Any:
    first, second = nn.Linear(4, 6).to(d), nn.Linear(6, 2).to(e)
    optimizer = torch.optim.Adam([*first.parameters(), *second.parameters()], 0.01, foreach=True)
    found = []
    for _ in range(3):
        loss = second(first(draw(5, 4, device=d)).relu().to(e)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        total = clip_grad_norm_([*first.parameters(), *second.parameters()], 1.0)
        optimizer.step()
        found += [loss.detach().to(d), total.to(d)]
    return [*found, *[p.detach().to(d) for p in (*first.parameters(), *second.parameters())]]


@operation
def function_transforms(d: str, e: str) -> Any:
    x = draw(4, 3, device=d)
    w = draw(3, device=d)

    def f(row: torch.Tensor) -> torch.Tensor:
        return (row * w).sin().sum()

    model = nn.Linear(3, 2).to(d)
    parameters = {name: p.detach() for name, p in model.named_parameters()}

    def call(values: dict[str, torch.Tensor], row: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(model, values, (row,)).pow(2).sum()

    per_sample = torch.func.vmap(torch.func.grad(call), in_dims=(None, 0))(parameters, x)
    return [
        torch.vmap(f)(x),
        torch.func.grad(f)(x[0]),
        torch.func.jacrev(lambda row: row * w)(x[0]),
        torch.func.hessian(f)(x[0]),
        torch.func.jvp(f, (x[0],), (torch.ones(3, device=d),))[1],
        *per_sample.values(),
    ]


@operation
def device_contexts(d: str, e: str) -> Any:
    with torch.device(d):
        made = [torch.zeros(2), torch.rand(2), torch.tensor([1.0]), torch.arange(3), nn.Linear(2, 2)(torch.ones(1, 2))]
        with torch.device("cpu"):
            assert torch.zeros(1).device.type == "cpu"
        with torch.device("meta"):
            layer = nn.Linear(3, 2)
    assert layer.weight.device.type == "meta"
    layer.to_empty(device=d)
    nn.init.ones_(layer.weight)
    nn.init.zeros_(layer.bias)
    return [*made, layer(torch.ones(1, 3, device=d))]


@operation
def sparse(d: str, e: str) -> Any:
    i = torch.tensor([[0, 1], [1, 0]], device=d)
    s = torch.sparse_coo_tensor(i, torch.tensor([2.0, 3.0], device=d), (2, 2))
    return [
        s.to_dense(),
        torch.sparse.mm(s, torch.ones(2, 2, device=d)),
        s.coalesce().values(),
        (s @ torch.ones(2, device=d)),
    ]


@operation
def positional_table(d: str, e: str) -> Any:
    position = torch.arange(6, device=d).unsqueeze(1)
    scale = torch.exp(torch.arange(0, 4, 2, device=d) * (-math.log(10000.0) / 4))
    table = torch.zeros(6, 4, device=d)
    table[:, 0::2] = torch.sin(position * scale)
    table[:, 1::2] = torch.cos(position * scale)
    return [table]
