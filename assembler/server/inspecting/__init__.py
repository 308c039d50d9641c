"""What the inspector page asks beside what every client asks: moments, and what is behind a Node.

Read from `tracks` (a value over time), `facts` and `shown` (what was held and what was shown at
each moment), `travel` (all of it, made in one pass over a recording), `behind` (one Node) and
`travels` (those of an application). Nothing here knows HTTP.
"""
