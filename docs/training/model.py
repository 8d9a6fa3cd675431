"""The transformer that two of the programs train: one layer, small enough for a CPU."""
import torch


class Transformer(torch.nn.Module):
    def __init__(self, n_tokens, n_positions, width=32):
        super().__init__()
        self.tokens = torch.nn.Embedding(n_tokens, width)
        self.positions = torch.nn.Embedding(n_positions, width)
        self.layer = torch.nn.TransformerEncoderLayer(width, 1, 4 * width, dropout=0, batch_first=True)
        self.head = torch.nn.Linear(width, n_tokens)

    def forward(self, tokens, positions, hidden):
        """hidden: [length, length], or one for each row; true where a token must not look."""
        return self.head(self.layer(self.tokens(tokens) + self.positions(positions), hidden))
