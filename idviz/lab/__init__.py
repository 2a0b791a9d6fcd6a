"""Small language models on real text: train them, measure them, load the trained ones that idviz carries.

- Text: ``corpus`` (plays, files, what is held out), ``streaming`` (text larger than memory), ``Tokenizer``
- Training: ``TrainingConfig`` and ``load_config``, ``train`` and ``resume``; ``checkpoint`` and ``runs`` hold the files
- Trained models: ``load_model``, ``bundled_models``, ``add_model``, ``card``
- Perplexity: ``score``, ``length_curve``, ``measure_lengths``, ``in_units``; as yardsticks ``Unigram``, and for facts
  ``Ideal``
- Evaluation: ``held_out``, ``own_text``, ``evaluate``, ``needles``, ``measure_cost``
- Recall: ``RecallTask``, ``RecallTraining``, ``NeedleTask``, ``recall_accuracy``, ``recall_loss``
- Studies, variants × seeds: ``load_study``, ``load_recall_study``; ``study`` and ``recall_study`` run them
- Settings for each mixer by equally many trials: ``load_tuning``; ``tuning`` runs them
- A look inside: ``pieces``, ``probing``; ``measure_lookup``, where a model looks facts up
- Results of all these: ``results`` as JSON, ``typed_result`` and ``studies`` as objects with their statistics

Each is imported, and PyTorch with it, when it is first used.

>>> import idviz.lab
>>> model = idviz.lab.load_model("interdomain-tiny")  # doctest: +SKIP
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submodules=(
        "bundling cards checkpoint config corpus cost evaluation files ideal lengths lookup models optimiser "
        "perplexity probing recall recall_study results runs scoring streaming studies study tokenizer training tuning "
        "tuning_plan unigram units validation"
    ).split(),
    submod_attrs={
        "bundling": ["add_model"],
        "cards": ["card"],
        "config": ["StreamOptions", "TrainingConfig", "load_config"],
        "cost": ["measure_cost"],
        "evaluation": ["Text", "evaluate", "held_out", "needles", "own_text"],
        "ideal": ["Ideal"],
        "lengths": ["measure_lengths"],
        "lookup": ["measure_lookup"],
        "models": ["TrainedModel", "bundled_models", "load_model"],
        "perplexity": ["LengthCurve", "Score", "length_curve", "score"],
        "probing": ["pieces"],
        "recall": ["NeedleTask", "RecallTask", "recall_accuracy", "recall_loss"],
        "recall_study": ["RecallTraining", "load_recall_study"],
        "scoring": ["score_run"],
        "studies": ["typed_result"],
        "study": ["load_study"],
        "tokenizer": ["Tokenizer"],
        "training": ["NotFinite", "resume", "train"],
        "tuning_plan": ["load_tuning"],
        "unigram": ["Unigram"],
        "units": ["bootstrap", "in_units"],
    },
)
