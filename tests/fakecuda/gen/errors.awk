# The enumerators of CUresult as ERROR(name) lines, from cuda.h.
/^typedef enum cudaError_enum/ { inside = 1 }
/^} CUresult/ { inside = 0 }
inside && match($0, /^ +CUDA_[A-Z0-9_]+ *=/) {
    name = $1
    print "ERROR(" name ")"
}
