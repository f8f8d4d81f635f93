#define EACH 500000

void work(int times) {
    volatile double sum = 0;
    for (long i = 0; i < (long)times * EACH; i++)
        sum += i;
}
