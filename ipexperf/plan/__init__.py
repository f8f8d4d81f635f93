"""Options become a matrix, and the matrix a list of cases, with a reason for every cell left out."""
