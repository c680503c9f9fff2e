from markovia.models.deep.deep_model import DeepModel as DeepModel
