"""What recipes of random_subset_mean do with seeds of any size; shared by tests that run them in different ways."""


def fault_of_seeds(module):
    """What is wrong with its answers, in one line, or None. Every integer is a seed with an answer of its own, or is
    refused with a ValueError; those of 32 bits have an answer everywhere."""
    answers = {}
    for seed in (0, 1, 2**31, 2**32 - 1, 2**32, 2**32 + 1, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 2**64 + 1, -1, -(2**63)):
        try:
            result = module.random_subset_mean(5, 7, seed=seed)
            module.wait(result)
            answer = module.download(result)
        except ValueError as error:
            if 0 <= seed < 2**32:
                return f"seed {seed} is refused: {error}"
            continue
        if answer in answers:
            return f"seeds {answers[answer]} and {seed} both gave {answer!r}"
        if not abs(answer - 11) < 6 / 12**0.5:  # six standard errors of 3 × 4 samples
            return f"seed {seed} gave {answer!r}"
        answers[answer] = seed
    return None
