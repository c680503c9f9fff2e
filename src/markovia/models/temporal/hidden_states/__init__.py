"""What models of hidden states share: their settings, emissions, inputs and questions."""
