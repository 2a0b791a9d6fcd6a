"""Every page's result, computed without drawing anything: a frozen dataclass and the ``compute`` that makes it.

One module a page (``memory``, ``basis``, ``query``, ``approximations``, ``modes``, ``lag_kernel``, ``three_forms``,
``state``, ``length``, ``recall``, ``ablation``, ``generate``). Beside them: ``measured`` reads results that commands
wrote, ``trained_models`` the models that idviz carries; ``paper`` holds what the paper reports, ``claims`` the rules by
which our numbers agree with it; ``ablation_words`` has the words for a study's variants, ``stepping`` what the pages of
stepped states share; ``timing`` measures the time and memory of a computation.
"""
