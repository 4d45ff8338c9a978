"""Visits to hosts: which addresses are asked for, in turns, by the rules of robots.txt, and with patience."""
