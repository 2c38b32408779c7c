"""Experiment `questions` (chapter 19): stories stretched by sentences of others, asked by the rule of *uses*.

An answer is one word, so that the share of answers found is the share of exact matches.

Written before the records. Five trials of seed 0 had been seen, of 600 to 1,500 steps: RoPE, SeqPE and the
separated model at random positions learned the task, the dense sinusoid at random positions did not in 900,
and the separated model with gaps was on its way. At eight trained lengths, on validation stories, the
separated model at random positions found a quarter of the answers and SeqPE half of them.
"""

from sepnb.claims.asks import against, each
from sepnb.claims.claim import Claim
from sepnb.claims.recall import LEARNT, separated_uses, uses_claim
from sepnb.claims.uses import FAR

TASK = "questions"
SEQPE = "seqpe"
STRONG = "rope, alibi"
"""The expert-designed encodings that the abstract of SeqPE names."""

CLAIMS = {
    "questions-a-separated-model-uses": separated_uses(TASK),
    "questions-rope-uses": uses_claim(
        TASK, "RoPE answers questions at eight trained lengths as it was trained", "rope"
    ),
    "questions-seqpe-surpasses-strong-baselines": Claim(
        "In long-context question answering SeqPE surpasses strong baselines in exact match",
        against(SEQPE, STRONG, *each("exact_match/native/{}", "2x, 4x, 8x"), low=0.0),
        floors=(LEARNT,),
        higher_is_better=True,
        source="seqpe-abstract",
        experiment=f"experiment/{TASK}",
        remark="SeqPE is a term of the score, trained with shift steps and both losses. The window that "
        "teaches is as long as the texts of the last steps; the first ones read half of it.",
    ),
    "questions-seqpe-uses": uses_claim(TASK, "SeqPE answers questions at eight trained lengths", SEQPE),
    "questions-scaled-rope-uses": uses_claim(
        TASK,
        "With scaled frequencies RoPE answers questions over texts longer than those of training",
        "rope",
        *(f"{FAR}{one}" for one in ("ntk", "ntk-by-parts", "yarn")),
        source="article-positional-encoding",
        parts=True,
    ),
}
