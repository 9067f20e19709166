# id = "362"
# cause = "metric_state"
# also_causes = ["plain_tensor_attribute", "fresh_tensor_no_device"]
# culprit = "self.total"
# also_culprit = ["fid.real.total", "stats.total", "fid.real", "self.real", "self.outer", "fid.real.outer", "stats"]
# culprit_cell = 2
# origin_cell = 2
# also_cells = [3, 4]
# origin = "self.total = torch.zeros(self.dim, dtype=torch.float64)"
# culprit_device = "HOST"
# other_device = "DEV"
# fail_cell = 5
# fix_site = "a method of a class"
# visible = "only in an object attribute"
# expect_after_fix = "bool(torch.isfinite(gap)) and fid.real.n == 16 and fid.fake.n == 16"
# # summing on the host (feats.cpu()) is as right as summing on the card
# [[ref_fix]]
# op = "replace"
# cell = 2
# old = "feats = feats.double()"
# new = "feats = feats.double(); self.total, self.outer = self.total.to(feats.device), self.outer.to(feats.device)"
# [rerun]
# cells = [2, 3, 4, 5]

# %%
import torch
from torch import nn

# %%
class FeatureStats:
    """mean and covariance of features, batch by batch"""
    def __init__(self, dim):
        self.dim = dim
        self.reset()

    def reset(self):
        self.n = 0
        self.total = torch.zeros(self.dim, dtype=torch.float64)
        self.outer = torch.zeros(self.dim, self.dim, dtype=torch.float64)

    def update(self, feats):
        feats = feats.double()
        self.total += feats.sum(0)
        self.outer += feats.T @ feats
        self.n += len(feats)

    def mean_cov(self):
        mu = self.total / self.n
        return mu, (self.outer - self.n * torch.outer(mu, mu)) / (self.n - 1)

# %%
class FID:
    def __init__(self, extractor, dim):
        self.extractor = extractor.eval()
        self.real, self.fake = FeatureStats(dim), FeatureStats(dim)

    @torch.no_grad()
    def update(self, imgs, real):
        stats = self.real if real else self.fake
        stats.update(self.extractor(imgs))

    def compute(self):
        (m1, c1), (m2, c2) = self.real.mean_cov(), self.fake.mean_cov()
        # diagonal approximation, enough for a progress bar
        d1, d2 = c1.diagonal(), c2.diagonal()
        return (m1 - m2).square().sum() + (d1 + d2 - 2 * (d1 * d2).clamp(min=0).sqrt()).sum()

# %%
inception = nn.Sequential(nn.Flatten(), nn.Linear(48, 6), nn.Tanh()).to(DEV)
fid = FID(inception, dim=6)
gen = nn.Sequential(nn.Linear(4, 48), nn.Sigmoid(), nn.Unflatten(1, (3, 4, 4))).to(DEV)

# %%
real_imgs = torch.rand(2, 8, 3, 4, 4)
for batch in real_imgs:
    fid.update(batch.to(DEV), real=True)
    fid.update(gen(torch.randn(8, 4, device=DEV)), real=False)
gap = fid.compute()
