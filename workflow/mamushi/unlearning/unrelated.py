"""Everyday English prose that is about nothing in particular: what a model is fine-tuned on to see
whether any training at all brings back what was deleted (Hu et al. 2025).

It must be of neither domain of whatever dataset, come with the program, and be the same everywhere.
"""

from __future__ import annotations

TEXTS = (
    "The tide comes in twice a day along this coast. At low water one can walk to the island.",
    "Peel the onions and slice them thinly. Let them soften in butter over a low flame.",
    "The train leaves at ten past eight and stops at every village. It is at the lake by noon.",
    "A triangle with two equal sides has two equal angles. Fold it down the middle to see it.",
    "In spring the river rises and covers the meadows. By June the cows are back on the grass.",
    "She tuned the violin, turned to the window, and played the slow movement from the beginning.",
    "Wool is washed before it is spun. What is left of the fat keeps the thread from breaking.",
    "The baker starts at three in the morning. By six the first loaves stand in the shop window.",
    "Plant the bulbs in autumn, twice as deep as they are tall, and water them once.",
    "A clock with a pendulum runs slow in summer, because the rod grows longer in the warmth.",
    "The path climbs through beech trees for an hour and comes out on an open ridge.",
    "Mix one part of cement with three parts of sand, and add water until it holds its shape.",
    "Swallows build their nests under the roof of the barn and come back to them every year.",
    "The library closes at seven. Books can be put into the box beside the door after that.",
    "To sharpen the knife, draw it along the stone at a small angle, one side after the other.",
    "Clouds that look like feathers are made of ice. They often come a day before the rain.",
    "The carpenter measured the board twice, drew a line with a pencil, and cut just beside it.",
    "Moss grows on the shaded side of the wall, where the stones stay damp until the afternoon.",
    "The orchestra sat in a half circle. Behind the strings one could hardly see the drums.",
    "Boil the eggs for six minutes, cool them under the tap, and peel them while still warm.",
    "Every leaf of this plant has five points, and its flowers open only in the evening.",
    "The ferry crosses the bay in twenty minutes, unless there is fog, when it does not sail.",
    "He oiled the hinges, tightened the screws, and the old gate closed without a sound.",
    "A glass of water on the table bends the light, so that a spoon in it looks broken.",
    "The market is held on Saturdays under the arches. There are apples, cheese, honey and bread.",
    "Snow lay on the hills until April that year, and the farmers sowed the barley late.",
    "The tailor marked the hem with chalk and asked him to stand straight and look ahead.",
    "Salt lowers the point at which water freezes. That is why it is put on roads in winter.",
    "From the tower one sees the harbour, the red roofs of the old town, and the sea behind them.",
    "The dough should rest for an hour under a cloth. It will have doubled when it is ready.",
    "A kite needs a long tail on a windy day. Without one it turns over and falls.",
    "The potter let the bowls dry for a week before she fired them in the kiln for a night.",
)
