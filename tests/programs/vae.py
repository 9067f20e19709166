"""A variational autoencoder with mixed precision where there is a card for it, and an interpolation."""

# %%
import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset

device = torch.device(DEV)
torch.manual_seed(1)


# %%
class Squares(Dataset):
    """Pictures of a bright square somewhere in the dark."""

    def __init__(self, n):
        self.corner = torch.randint(0, 6, (n, 2))

    def __len__(self):
        return len(self.corner)

    def __getitem__(self, i):
        picture = torch.zeros(8, 8)
        r, c = self.corner[i].tolist()
        picture[r : r + 3, c : c + 3] = 1.0
        return {"picture": picture, "corner": self.corner[i]}


loader = DataLoader(Squares(128), batch_size=32, shuffle=True)


# %%
class VAE(nn.Module):
    def __init__(self, latent=4):
        super().__init__()
        self.fc1 = nn.Linear(64, 48)
        self.fc21 = nn.Linear(48, latent)
        self.fc22 = nn.Linear(48, latent)
        self.fc3 = nn.Linear(latent, 48)
        self.fc4 = nn.Linear(48, 64)
        self.register_buffer("prior_mean", torch.zeros(latent))
        self.register_buffer("prior_std", torch.ones(latent))

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.randn_like(std)
        return mu + eps * std

    def decode(self, z):
        return self.fc4(F.relu(self.fc3(z)))

    def prior(self):
        return torch.distributions.Normal(self.prior_mean, self.prior_std)

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, 64))
        z = self.reparameterize(mu, logvar)
        return self.decode(z), mu, logvar


model = VAE().to(device)
optimizer = optim.Adam(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler(device.type, init_scale=256.0)
beta = torch.tensor(0.5)  # a number: a host scalar may meet a card
losses = []


# %%
def loss_function(recon_x, x, mu, logvar):
    bce = F.binary_cross_entropy_with_logits(recon_x, x.view(-1, 64), reduction="sum")
    posterior = torch.distributions.Normal(mu, (0.5 * logvar).exp())
    kld = torch.distributions.kl_divergence(posterior, model.prior()).sum()
    return (bce + beta * kld) / x.size(0)


for epoch in range(3):
    model.train()
    for batch in loader:
        batch = {key: value.to(device, non_blocking=True) for key, value in batch.items()}
        optimizer.zero_grad()
        with torch.autocast(device_type=device.type, dtype=torch.bfloat16):
            recon, mu, logvar = model(batch["picture"])
        loss = loss_function(recon.float(), batch["picture"], mu.float(), logvar.float())
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    print("epoch", epoch, "loss", losses[-1])

# %%
model.eval()
first, second = Squares(2)[0]["picture"], Squares(2)[1]["picture"]
with torch.no_grad():
    (z1, _), (z2, _) = (model.encode(p.to(device).view(1, 64)) for p in (first, second))
    steps = torch.linspace(0, 1, 5, device=device)[:, None]
    between = torch.lerp(z1.expand(5, -1), z2.expand(5, -1), steps)
    pictures = model.decode(between).sigmoid().view(5, 8, 8)
    samples = model.decode(model.prior().sample((4,))).sigmoid()
grid = torch.cat([pictures.flatten(1), samples]).cpu().numpy()
losses += [float(grid.mean()), float(grid.std())]
